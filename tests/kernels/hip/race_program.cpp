// SPDX-License-Identifier: Apache-2.0
// Kernels with and without a race, for race_test.cpp to run under
// ThreadSanitizer. Prints nothing itself; exits with 66, ThreadSanitizer's
// status, where a race was seen.
#include <cstdint>
#include <cstdio>
#include <string>

#include "kernels/hip/atomics.h"
#include "kernels/hip/wave.h"

namespace {

using namespace exact_topk::hip;

template <bool Barrier>
__global__ void reverse_lds(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  lds[threadIdx.x] = threadIdx.x;
  if (Barrier) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      lds[blockDim.x - 1 - threadIdx.x];
}

// The first thread writes between two barriers what all read before the second,
// which the first has reached by the time the others leave the first one.
template <bool Barrier>
__global__ void pass_on(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  __syncthreads();
  if (threadIdx.x == 0) lds[0] = 7;
  if (Barrier) __syncthreads();
  out[threadIdx.x] = lds[0];
  __syncthreads();
}

// A collective lets lanes meet but orders no memory.
__global__ void collective_for_barrier(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  lds[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = 0;
  if (ballot<64>(true) != 0) out[threadIdx.x] = lds[63 - threadIdx.x];
}

// Block 0 hands a plain value over by a count, or by a pair, which orders only
// itself.
template <bool Counter>
__global__ void hand_over(unsigned* value, std::uint64_t* pair,
                          std::uint32_t* counter, unsigned* out) {
  if (blockIdx.x == 0) {
    *value = 5;
    counter_add_release(counter, 1);
    pair_store(pair, 0, 1);
  } else {
    if (Counter)
      counter_wait_acquire(counter, 1);
    else
      pair_poll(pair, 1);
    *out = *value;
  }
}

// Every block writes its own element, or all the same one.
template <bool Own>
__global__ void write_per_block(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  lds[0] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) out[Own ? blockIdx.x : 0] = lds[0];
}

template <class Launch>
int with_memory(Launch launch) {
  unsigned* out = nullptr;
  std::uint64_t* pair = nullptr;
  if (hipMalloc(&out, 1024) != hipSuccess || hipMalloc(&pair, 8) != hipSuccess)
    return 2;
  if (hipMemset(out, 0, 1024) != hipSuccess ||
      hipMemset(pair, 0, 8) != hipSuccess)
    return 2;
  for (int i = 0; i < 3; ++i) launch(out, pair);
  const hipError_t error = hipGetLastError();
  if (error != hipSuccess) std::puts(cpu::last_report().c_str());
  return hipFree(out) == hipSuccess && hipFree(pair) == hipSuccess &&
                 error == hipSuccess
             ? 0
             : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  return with_memory([&](unsigned* out, std::uint64_t* pair) {
    auto* const counter = reinterpret_cast<std::uint32_t*>(out + 200);
    unsigned* const result = out + 201;
    const auto cooperative = [&](void (*kernel)(unsigned*, std::uint64_t*,
                                                std::uint32_t*, unsigned*)) {
      void* arguments[] = {&out, &pair, const_cast<std::uint32_t**>(&counter),
                           const_cast<unsigned**>(&result)};
      static_cast<void>(
          hipLaunchCooperativeKernel(kernel, 2, 1, arguments, 0, nullptr));
    };
    if (mode == "barrier")
      hipLaunchKernelGGL(reverse_lds<true>, 2, 64, 256, nullptr, out);
    if (mode == "missing-barrier")
      hipLaunchKernelGGL(reverse_lds<false>, 1, 64, 256, nullptr, out);
    if (mode == "barrier-between")
      hipLaunchKernelGGL(pass_on<true>, 1, 64, 256, nullptr, out);
    if (mode == "missing-barrier-between")
      hipLaunchKernelGGL(pass_on<false>, 1, 64, 256, nullptr, out);
    if (mode == "collective-for-barrier")
      hipLaunchKernelGGL(collective_for_barrier, 1, 64, 256, nullptr, out);
    if (mode == "counter") cooperative(hand_over<true>);
    if (mode == "pair-for-counter") cooperative(hand_over<false>);
    if (mode == "own-elements")
      hipLaunchKernelGGL(write_per_block<true>, 4, 1, 4, nullptr, out);
    if (mode == "same-element")
      hipLaunchKernelGGL(write_per_block<false>, 4, 1, 4, nullptr, out);
  });
}
