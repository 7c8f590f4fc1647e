// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "kernels/hip/atomics.h"
#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

using testing::Each;

__global__ void write_indices(uint4* out) {
  const unsigned block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      make_uint4(blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16, threadIdx.x,
                 threadIdx.y, threadIdx.z);
}

TEST(Runtime, EveryThreadOfEveryBlockRunsOnceWithItsIndices) {
  constexpr unsigned kThreads = 5 * 3 * 2, kBlocks = 4 * 3 * 2;
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<uint4> out(kBlocks * kThreads);
    ASSERT_EQ(
        launch(write_indices, dim3(4, 3, 2), dim3(5, 3, 2), 0, out.data()),
        hipSuccess);
    const auto host = out.host();
    for (unsigned b = 0; b < kBlocks; ++b) {
      for (unsigned t = 0; t < kThreads; ++t) {
        const auto& seen = host[b * kThreads + t];
        EXPECT_EQ(seen.x, b % 4 | b / 4 % 3 << 8 | b / 12 << 16);
        EXPECT_EQ(seen.y, t % 5);
        EXPECT_EQ(seen.z, t / 5 % 3);
        EXPECT_EQ(seen.w, t / 15);
      }
    }
  }
}

// A prefix sum by doubling: every step needs two barriers.
__global__ void prefix_sum(const unsigned* in, unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, sums)
  const unsigned t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
  sums[t] = in[at];
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    __syncthreads();
    const unsigned below = t >= d ? sums[t - d] : 0;
    __syncthreads();
    sums[t] += below;
  }
  out[at] = sums[t];
}

TEST(Runtime, BarriersOrderLdsUnderEverySchedule) {
  constexpr unsigned kThreads = 200,
                     kBlocks = 3;  // neither waves nor powers of two
  std::vector<unsigned> in(kThreads * kBlocks);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<unsigned>(i * i % 101);
  const DeviceArray<unsigned> device_in{std::span<const unsigned>(in)};
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<unsigned> out(in.size());
    ASSERT_EQ(launch(prefix_sum, kBlocks, kThreads, kThreads * 4,
                     device_in.data(), out.data()),
              hipSuccess)
        << cpu::last_report();
    std::vector<unsigned> expected(in.size());
    for (unsigned b = 0; b < kBlocks; ++b)
      std::partial_sum(in.begin() + b * kThreads,
                       in.begin() + (b + 1) * kThreads,
                       expected.begin() + b * kThreads);
    EXPECT_EQ(out.host(), expected) << schedule;
  }
}

__global__ void own_copy(int value, int* out) {
  value += static_cast<int>(threadIdx.x);  // a parameter is the thread's own
  __syncthreads();
  out[threadIdx.x] = value;
}

TEST(Runtime, ParametersBelongToTheThread) {
  DeviceArray<int> out(64);
  ASSERT_EQ(launch(own_copy, 1, 64, 0, 100, out.data()), hipSuccess);
  for (int t = 0; t < 64; ++t)
    EXPECT_EQ(out.host()[static_cast<std::size_t>(t)], 100 + t);
}

__global__ void hand_on(std::uint64_t* pairs, std::uint32_t tag,
                        std::uint32_t* out) {
  const unsigned block = blockIdx.x;
  if (threadIdx.x == 0) {
    const std::uint32_t before =
        block == 0 ? 1 : pair_poll(pairs + block - 1, tag);
    pair_store(pairs + block, before * 3 + block, tag);
    out[block] = before;
  }
  __syncthreads();
}

TEST(Runtime, SixteenBlocksHandOverInACooperativeLaunch) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<std::uint64_t> pairs(16);
    DeviceArray<std::uint32_t> out(16);
    std::uint32_t expected = 1;
    for (std::uint32_t tag = 1; tag <= 3; ++tag)
      ASSERT_EQ(launch_cooperative(hand_on, 16, 256, 0, pairs.data(), tag,
                                   out.data()),
                hipSuccess)
          << cpu::last_report();
    for (std::uint32_t b = 0; b < 16; ++b) {
      EXPECT_EQ(out.host()[b], expected) << schedule;
      expected = expected * 3 + b;
    }
  }
}

__global__ void mark(unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

TEST(Runtime, ShapesOutOfRangeAreErrorsAndRunNothing) {
  DeviceArray<unsigned> out(1025);
  EXPECT_EQ(launch(mark, 1, 1025, 0, out.data()), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(mark, 0, 64, 0, out.data()), hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(mark, 1, dim3(64, 0), 0, out.data()),
            hipErrorInvalidConfiguration);
  EXPECT_EQ(launch(mark, 1, 64, cpu::kLdsBytes + 1, out.data()),
            hipErrorInvalidConfiguration);
  EXPECT_EQ(launch_cooperative(mark, 257, 1024, 0, out.data()),
            hipErrorCooperativeLaunchTooLarge);
  EXPECT_THAT(out.host(), Each(0u));
  EXPECT_EQ(launch(mark, 1, 1024, cpu::kLdsBytes, out.data()), hipSuccess);
}

__global__ void count_in(unsigned* counter) {
  atomicAdd(counter, 1);
  __syncthreads();
}

TEST(Runtime, LaunchesOfSeveralHostThreadsDoNotMeet) {
  DeviceArray<unsigned> counters(2);
  std::vector<std::thread> hosts;
  for (unsigned h = 0; h < 2; ++h)
    hosts.emplace_back([&, h] {
      for (int i = 0; i < 20; ++i)
        hipLaunchKernelGGL(count_in, 4, 128, 0, nullptr, counters.data() + h);
      EXPECT_EQ(hipGetLastError(), hipSuccess);
    });
  for (auto& host : hosts) host.join();
  EXPECT_THAT(counters.host(), Each(20u * 4 * 128));
}

TEST(Runtime, DeviceIsDescribedByTheOptions) {
  cpu::Options options;
  options.wave_size = 32;
  options.compute_units = 24;
  const ScopedOptions scope(options);
  int count = 0, device = -1;
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 0);
  hipDeviceProp_t properties;
  ASSERT_EQ(hipGetDeviceProperties(&properties, 0), hipSuccess);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.multiProcessorCount, 24);
  EXPECT_EQ(properties.sharedMemPerBlock, 160u * 1024);
  EXPECT_EQ(hipSetDevice(1), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDevice);
  EXPECT_STREQ(hipGetErrorString(hipErrorLaunchFailure),
               "unspecified launch failure");
}

TEST(Runtime, StreamsAndEventsKeepOrder) {
  hipStream_t stream = nullptr;
  hipEvent_t start = nullptr, stop = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  ASSERT_EQ(hipEventCreate(&start), hipSuccess);
  ASSERT_EQ(hipEventCreate(&stop), hipSuccess);
  float milliseconds = -1;
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, start, stop), hipErrorNotReady);
  static_cast<void>(hipGetLastError());
  DeviceArray<unsigned> out(64);
  EXPECT_EQ(hipEventRecord(start, stream), hipSuccess);
  hipLaunchKernelGGL(mark, 1, 64, 0, stream, out.data());
  EXPECT_EQ(hipEventRecord(stop, stream), hipSuccess);
  EXPECT_EQ(hipEventSynchronize(stop), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipEventElapsedTime(&milliseconds, start, stop), hipSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_EQ(hipEventDestroy(start), hipSuccess);
  EXPECT_EQ(hipEventDestroy(stop), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
}

TEST(Runtime, BitBuiltins) {
  EXPECT_EQ(__popc(0xF0F00001u), 9);
  EXPECT_EQ(__popcll(~0ull), 64);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clzll(1), 63);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(0x80u), 8);
  EXPECT_EQ(__ffsll(1ull << 40), 41);
  EXPECT_EQ(__float_as_uint(1.0f), 0x3F800000u);
  EXPECT_EQ(__float_as_int(-2.0f), static_cast<int>(0xC0000000u));
  EXPECT_EQ(__uint_as_float(0x40400000u), 3.0f);
  EXPECT_EQ(__int_as_float(0x40400000), 3.0f);
}

}  // namespace
}  // namespace exact_topk::hip::test
