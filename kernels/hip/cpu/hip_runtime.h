// SPDX-License-Identifier: Apache-2.0
#pragma once

// HIP's names on the CPU: the runtime calls and device features that kernels
// use, with HIP's signatures and meaning. How launches run and what is reported
// is in runtime.h; this file only dresses it.
//
// Differences that a HIP reader meets: launches and copies are complete when
// the call returns, so streams and events keep order for free; LDS is dynamic
// only (__shared__ is left undefined on purpose); a cooperative kernel is
// passed as the function itself, not as a void pointer; a launch that fails
// leaves hipErrorLaunchFailure for hipGetLastError and the whole story in
// exact_topk::hip::cpu::last_report().

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/hip/cpu/collectives.h"
#include "kernels/hip/cpu/memory.h"
#include "kernels/hip/cpu/runtime.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define HIP_KERNEL_NAME(...) __VA_ARGS__

#define threadIdx (::exact_topk::hip::cpu::current->index)
#define blockIdx (::exact_topk::hip::cpu::current->block->index)
#define blockDim (::exact_topk::hip::cpu::current->block->dim)
#define gridDim (::exact_topk::hip::cpu::current->block->grid)

/// Lanes a wave: an object rather than a macro because hipDeviceProp_t has a
/// member of the same name.
inline constexpr struct {
  operator int() const {
    return exact_topk::hip::cpu::current->block->wave_size;
  }
} warpSize;

/// Declares `type* name`... as HIP does: an array of the block's dynamic LDS.
#define HIP_DYNAMIC_SHARED(type, name) \
  type* const name =                   \
      reinterpret_cast<type*>(::exact_topk::hip::cpu::current->block->lds);

using dim3 = exact_topk::hip::cpu::Dim3;

// ---- vector types
// ---------------------------------------------------------------------------------------------------

struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr int2 make_int2(int x, int y) { return {x, y}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

// ---- errors
// ---------------------------------------------------------------------------------------------------------

enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidDevice = 101,
  hipErrorNotReady = 600,
  hipErrorLaunchFailure = 719,
  hipErrorCooperativeLaunchTooLarge = 720,
};

const char* hipGetErrorString(hipError_t error);
/// The first error of this OS thread since the last call, which forgets it.
hipError_t hipGetLastError();
/// The same without forgetting.
hipError_t hipPeekAtLastError();

// ---- devices
// --------------------------------------------------------------------------------------------------------

struct hipDeviceProp_t {
  char name[256];                 ///< "HIP on the CPU"
  char gcnArchName[256];          ///< "cpu"
  std::size_t totalGlobalMem;     ///< the host's physical memory
  std::size_t sharedMemPerBlock;  ///< LDS of a block
  int warpSize;                   ///< 64 or 32, a run option
  int maxThreadsPerBlock;         ///< 1024
  int multiProcessorCount;        ///< a run option
  int cooperativeLaunch;          ///< 1
};

hipError_t hipGetDeviceCount(int* count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int* device);
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceSynchronize();

// ---- memory
// ---------------------------------------------------------------------------------------------------------

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault,
};

struct ihipStream_t;
using hipStream_t = ihipStream_t*;

hipError_t hipMalloc(void** pointer, std::size_t bytes);
template <class T>
hipError_t hipMalloc(T** pointer, std::size_t bytes) {
  void* memory = nullptr;
  const hipError_t error = hipMalloc(&memory, bytes);
  *pointer = static_cast<T*>(memory);
  return error;
}
hipError_t hipFree(void* pointer);
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes,
                     hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes,
                          hipMemcpyKind kind, hipStream_t stream = nullptr);
hipError_t hipMemset(void* to, int value, std::size_t bytes);
hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes,
                          hipStream_t stream = nullptr);

// ---- streams and events
// ---------------------------------------------------------------------------------------------

struct ihipEvent_t;
using hipEvent_t = ihipEvent_t*;

hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr);
hipError_t hipEventSynchronize(hipEvent_t event);
/// Host milliseconds between two records: not a kernel time.
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start,
                               hipEvent_t stop);

// ---- launches
// -------------------------------------------------------------------------------------------------------

namespace exact_topk::hip::cpu {

/// Runs a launch and keeps its error for hipGetLastError.
hipError_t launch_and_note(const Kernel& kernel, const LaunchShape& shape);

template <class... Parameters>
hipError_t launch_bound(
    void (*kernel)(Parameters...),
    const std::tuple<std::decay_t<Parameters>...>& arguments,
    const LaunchShape& shape) {
  struct Bound {
    void (*kernel)(Parameters...);
    const std::tuple<std::decay_t<Parameters>...>* arguments;
  };
  const Bound bound{kernel, &arguments};
  const auto run = [](const void* opaque) {
    const auto& b = *static_cast<const Bound*>(opaque);
    // Every thread gets parameters of its own, as on a GPU.
    std::apply([&](auto... values) { b.kernel(values...); }, *b.arguments);
  };
  return launch_and_note({run, &bound}, shape);
}

}  // namespace exact_topk::hip::cpu

template <class... Parameters, class... Arguments>
void hipLaunchKernelGGL(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                        std::uint32_t lds_bytes,
                        [[maybe_unused]] hipStream_t stream,
                        Arguments&&... arguments) {
  exact_topk::hip::cpu::launch_bound(
      kernel,
      std::tuple<std::decay_t<Parameters>...>(
          static_cast<Parameters>(std::forward<Arguments>(arguments))...),
      {grid, block, lds_bytes, false});
}

template <class... Parameters>
hipError_t hipLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid,
                                      dim3 block, void** arguments,
                                      std::uint32_t lds_bytes,
                                      [[maybe_unused]] hipStream_t stream) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return exact_topk::hip::cpu::launch_bound(
        kernel,
        std::tuple<std::decay_t<Parameters>...>(
            *static_cast<std::decay_t<Parameters>*>(arguments[I])...),
        {grid, block, lds_bytes, true});
  }
  (std::index_sequence_for<Parameters...>{});
}

// ---- device code: barriers and wave collectives
// ---------------------------------------------------------------------

inline void __syncthreads(
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  exact_topk::hip::cpu::barrier(site);
}

namespace exact_topk::hip::cpu {

/// The lane's place in its group of `width` lanes (0: the wave) and the group's
/// first lane.
struct Segment {
  int lane;   ///< of the caller, in the wave
  int first;  ///< lane of the group
  int last;   ///< lane of the group
  explicit Segment(int width)
      : lane(static_cast<int>(current->lane)),
        first(width == 0 ? 0 : lane & -width),
        last(first + (width == 0 ? current->block->wave_size : width) - 1) {}
  /// `source` where it lies in the group, else the caller's own lane.
  int clip(int source) const {
    return source < first || source > last ? lane : source;
  }
};

}  // namespace exact_topk::hip::cpu

template <class T>
T __shfl_sync(
    std::uint64_t mask, T value, int source, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  const exact_topk::hip::cpu::Segment segment(width);
  return exact_topk::hip::cpu::exchange(
      value, segment.first + (source & (segment.last - segment.first)), mask,
      site);
}
template <class T>
T __shfl_up_sync(
    std::uint64_t mask, T value, unsigned delta, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  const exact_topk::hip::cpu::Segment segment(width);
  return exact_topk::hip::cpu::exchange(
      value, segment.clip(segment.lane - static_cast<int>(delta)), mask, site);
}
template <class T>
T __shfl_down_sync(
    std::uint64_t mask, T value, unsigned delta, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  const exact_topk::hip::cpu::Segment segment(width);
  return exact_topk::hip::cpu::exchange(
      value, segment.clip(segment.lane + static_cast<int>(delta)), mask, site);
}
template <class T>
T __shfl_xor_sync(
    std::uint64_t mask, T value, int lane_mask, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  const exact_topk::hip::cpu::Segment segment(width);
  return exact_topk::hip::cpu::exchange(
      value, segment.clip(segment.lane ^ lane_mask), mask, site);
}
inline unsigned long long __ballot_sync(
    std::uint64_t mask, int predicate,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return exact_topk::hip::cpu::ballot(predicate != 0, mask, site);
}
inline int __any_sync(
    std::uint64_t mask, int predicate,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return exact_topk::hip::cpu::ballot(predicate != 0, mask, site) != 0;
}
inline int __all_sync(
    std::uint64_t mask, int predicate,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return exact_topk::hip::cpu::all(predicate != 0, mask, site);
}

template <class T>
T __shfl(T value, int source, int width = 0,
         exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return __shfl_sync(exact_topk::hip::cpu::kWholeWave, value, source, width,
                     site);
}
template <class T>
T __shfl_up(
    T value, unsigned delta, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return __shfl_up_sync(exact_topk::hip::cpu::kWholeWave, value, delta, width,
                        site);
}
template <class T>
T __shfl_down(
    T value, unsigned delta, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return __shfl_down_sync(exact_topk::hip::cpu::kWholeWave, value, delta, width,
                          site);
}
template <class T>
T __shfl_xor(
    T value, int lane_mask, int width = 0,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return __shfl_xor_sync(exact_topk::hip::cpu::kWholeWave, value, lane_mask,
                         width, site);
}
inline unsigned long long __ballot(
    int predicate,
    exact_topk::hip::cpu::Site site = exact_topk::hip::cpu::Site::here()) {
  return __ballot_sync(exact_topk::hip::cpu::kWholeWave, predicate, site);
}
inline int __any(int predicate, exact_topk::hip::cpu::Site site =
                                    exact_topk::hip::cpu::Site::here()) {
  return __any_sync(exact_topk::hip::cpu::kWholeWave, predicate, site);
}
inline int __all(int predicate, exact_topk::hip::cpu::Site site =
                                    exact_topk::hip::cpu::Site::here()) {
  return __all_sync(exact_topk::hip::cpu::kWholeWave, predicate, site);
}

// ---- device code: atomics, all relaxed as in HIP
// ----------------------------------------------------------------------

namespace exact_topk::hip::cpu {

template <class T>
concept Atomic = std::same_as<T, int> || std::same_as<T, unsigned> ||
    std::same_as<T, unsigned long long>;

/// Replaces *address by update(*address) and returns the old value.
template <class T, class Update>
T atomic_update(T* address, Update update) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(address, &old, update(old), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace exact_topk::hip::cpu

template <exact_topk::hip::cpu::Atomic T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <exact_topk::hip::cpu::Atomic T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <exact_topk::hip::cpu::Atomic T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <exact_topk::hip::cpu::Atomic T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <exact_topk::hip::cpu::Atomic T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}
template <exact_topk::hip::cpu::Atomic T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return exact_topk::hip::cpu::atomic_update(
      address, [value](T old) { return old < value ? value : old; });
}
template <exact_topk::hip::cpu::Atomic T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return exact_topk::hip::cpu::atomic_update(
      address, [value](T old) { return value < old ? value : old; });
}
template <exact_topk::hip::cpu::Atomic T>
T atomicCAS(T* address, std::type_identity_t<T> expected,
            std::type_identity_t<T> value) {
  __atomic_compare_exchange_n(address, &expected, value, false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

/// Orders this thread's accesses for the device. ThreadSanitizer knows no
/// fences: there, only barriers and acquire-release operations order.
inline void __threadfence() {
  if constexpr (!exact_topk::hip::cpu::sanitizer::kThread)
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

// ---- device code: bits
// ------------------------------------------------------------------------------------------------

constexpr int __popc(unsigned x) { return std::popcount(x); }
constexpr int __popcll(unsigned long long x) { return std::popcount(x); }
constexpr int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
constexpr int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
constexpr int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
constexpr int __ffsll(unsigned long long x) {
  return x == 0 ? 0 : std::countr_zero(x) + 1;
}
constexpr unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
constexpr int __float_as_int(float x) { return std::bit_cast<int>(x); }
constexpr float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
constexpr float __int_as_float(int x) { return std::bit_cast<float>(x); }
