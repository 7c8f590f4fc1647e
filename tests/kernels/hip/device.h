// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of HIP on the CPU share: device arrays, options for the length
// of a scope, launches with their error.

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/hip/hip.h"

namespace exact_topk::hip::test {

/// Device memory of `count` elements, zeroed or copied from the host.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    EXPECT_EQ(hipMalloc(&data_, count * sizeof(T)), hipSuccess);
    EXPECT_EQ(hipMemset(data_, 0, count * sizeof(T)), hipSuccess);
  }
  explicit DeviceArray(std::span<const T> from) : DeviceArray(from.size()) {
    EXPECT_EQ(
        hipMemcpy(data_, from.data(), from.size_bytes(), hipMemcpyHostToDevice),
        hipSuccess);
  }
  ~DeviceArray() { EXPECT_EQ(hipFree(data_), hipSuccess); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> copy(count_);
    EXPECT_EQ(hipMemcpy(copy.data(), data_, count_ * sizeof(T),
                        hipMemcpyDeviceToHost),
              hipSuccess);
    return copy;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Sets options and puts the old ones back at the end of the scope.
class ScopedOptions {
 public:
  explicit ScopedOptions(const cpu::Options& options)
      : before_(cpu::options()) {
    cpu::set_options(options);
  }
  ~ScopedOptions() { cpu::set_options(before_); }
  ScopedOptions(const ScopedOptions&) = delete;
  ScopedOptions& operator=(const ScopedOptions&) = delete;

 private:
  cpu::Options before_;
};

inline cpu::Options with_wave(int wave_size) {
  cpu::Options options;
  options.wave_size = wave_size;
  return options;
}

inline cpu::Options with_schedule(std::string schedule) {
  cpu::Options options;
  options.schedule = std::move(schedule);
  return options;
}

/// Launches and returns the launch's own error.
template <class... Parameters, class... Arguments>
hipError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                  std::uint32_t lds_bytes, Arguments... arguments) {
  static_cast<void>(hipGetLastError());
  hipLaunchKernelGGL(kernel, grid, block, lds_bytes, nullptr, arguments...);
  return hipGetLastError();
}

/// The same for a cooperative launch.
template <class... Parameters>
hipError_t launch_cooperative(void (*kernel)(Parameters...), dim3 grid,
                              dim3 block, std::uint32_t lds_bytes,
                              std::type_identity_t<Parameters>... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
  const hipError_t error = hipLaunchCooperativeKernel(
      kernel, grid, block, pointers, lds_bytes, nullptr);
  EXPECT_EQ(hipGetLastError(), error);
  return error;
}

/// Schedules under which a correct kernel gives the same result.
inline std::vector<std::string> schedules() {
  return {"round-robin", "reverse",  "random:1",
          "random:2",    "random:3", "random:18446744073709551615"};
}

}  // namespace exact_topk::hip::test
