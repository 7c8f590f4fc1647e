// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/hip_runtime.h"

#include <unistd.h>

#include <memory>

struct ihipStream_t {};

struct ihipEvent_t {
  bool recorded = false;                       // hipEventRecord was called
  std::chrono::steady_clock::time_point time;  // when
};

namespace {

using exact_topk::hip::cpu::Freed;
using exact_topk::hip::cpu::LaunchResult;

thread_local hipError_t last_error = hipSuccess;

hipError_t note(hipError_t error) {
  if (last_error == hipSuccess) last_error = error;
  return error;
}

hipError_t checked(const void* memory, std::size_t bytes) {
  const bool bad = (memory == nullptr && bytes != 0) ||
                   exact_topk::hip::cpu::overruns_allocation(memory, bytes);
  return bad ? note(hipErrorInvalidValue) : hipSuccess;
}

}  // namespace

namespace exact_topk::hip::cpu {

hipError_t launch_and_note(const Kernel& kernel, const LaunchShape& shape) {
  switch (launch(kernel, shape)) {
    case LaunchResult::success:
      return hipSuccess;
    case LaunchResult::invalid_configuration:
      return note(hipErrorInvalidConfiguration);
    case LaunchResult::too_large:
      return note(hipErrorCooperativeLaunchTooLarge);
    case LaunchResult::failed:
      break;
  }
  return note(hipErrorLaunchFailure);
}

}  // namespace exact_topk::hip::cpu

const char* hipGetErrorString(hipError_t error) {
  switch (error) {
    case hipSuccess:
      return "no error";
    case hipErrorInvalidValue:
      return "invalid argument";
    case hipErrorOutOfMemory:
      return "out of memory";
    case hipErrorInvalidConfiguration:
      return "invalid configuration argument";
    case hipErrorInvalidDevice:
      return "invalid device ordinal";
    case hipErrorNotReady:
      return "device not ready";
    case hipErrorLaunchFailure:
      return "unspecified launch failure";
    case hipErrorCooperativeLaunchTooLarge:
      return "too many blocks in cooperative launch";
  }
  return "unknown error";
}

hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }
hipError_t hipPeekAtLastError() { return last_error; }

hipError_t hipGetDeviceCount(int* count) {
  *count = 1;
  return hipSuccess;
}
hipError_t hipSetDevice(int device) {
  return device == 0 ? hipSuccess : note(hipErrorInvalidDevice);
}
hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  if (device != 0) return note(hipErrorInvalidDevice);
  const auto& options = exact_topk::hip::cpu::options();
  *properties = {};
  std::strcpy(properties->name, "HIP on the CPU");
  std::strcpy(properties->gcnArchName, "cpu");
  properties->totalGlobalMem =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
      static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  properties->sharedMemPerBlock = exact_topk::hip::cpu::kLdsBytes;
  properties->warpSize = options.wave_size;
  properties->maxThreadsPerBlock = exact_topk::hip::cpu::kMostBlockThreads;
  properties->multiProcessorCount = options.compute_units;
  properties->cooperativeLaunch = 1;
  return hipSuccess;
}
hipError_t hipDeviceSynchronize() { return last_error; }

hipError_t hipMalloc(void** pointer, std::size_t bytes) {
  *pointer = exact_topk::hip::cpu::allocate(bytes);
  return *pointer == nullptr ? note(hipErrorOutOfMemory) : hipSuccess;
}
hipError_t hipFree(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  switch (exact_topk::hip::cpu::deallocate(pointer)) {
    case Freed::success:
      return hipSuccess;
    case Freed::unknown_pointer:
      return note(hipErrorInvalidValue);
    case Freed::guard_damaged:
      break;
  }
  return note(hipErrorLaunchFailure);
}
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes,
                     hipMemcpyKind) {
  if (const auto error = checked(to, bytes); error != hipSuccess) return error;
  if (const auto error = checked(from, bytes); error != hipSuccess)
    return error;
  if (bytes != 0) std::memmove(to, from, bytes);
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes,
                          hipMemcpyKind kind, hipStream_t) {
  return hipMemcpy(to, from, bytes, kind);
}
hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  if (const auto error = checked(to, bytes); error != hipSuccess) return error;
  if (bytes != 0) std::memset(to, value, bytes);
  return hipSuccess;
}
hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t) {
  return hipMemset(to, value, bytes);
}

hipError_t hipStreamCreate(hipStream_t* stream) {
  *stream = std::make_unique<ihipStream_t>().release();
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t stream) {
  const std::unique_ptr<ihipStream_t> owner(stream);
  return owner ? hipSuccess : note(hipErrorInvalidValue);
}
hipError_t hipStreamSynchronize(hipStream_t) { return last_error; }
hipError_t hipEventCreate(hipEvent_t* event) {
  *event = std::make_unique<ihipEvent_t>().release();
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t event) {
  const std::unique_ptr<ihipEvent_t> owner(event);
  return owner ? hipSuccess : note(hipErrorInvalidValue);
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  *event = {true, std::chrono::steady_clock::now()};
  return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t event) {
  return event->recorded ? hipSuccess : note(hipErrorNotReady);
}
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start,
                               hipEvent_t stop) {
  if (!start->recorded || !stop->recorded) return note(hipErrorNotReady);
  *milliseconds =
      std::chrono::duration<float, std::milli>(stop->time - start->time)
          .count();
  return hipSuccess;
}
