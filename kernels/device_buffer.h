// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device memory that frees itself. An empty buffer holds none.

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/backend.h"
#include "kernels/failure.h"

namespace exact_topk::kernels {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // `name` is what reports call it.
  DeviceBuffer(uint64_t bytes, const std::string& name) : bytes_(bytes) {
    if (bytes == 0) return;
    if (hipMalloc(&data_, bytes) != hipSuccess) {
      static_cast<void>(hipGetLastError());
      throw Failure(XTK_FAILED,
                    fmt::format("the device has no room for the {} bytes of {}",
                                bytes, name));
    }
    backend::name_allocation(data_, name);
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) static_cast<void>(hipFree(data_));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  uint64_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

  // Both ranges lie inside the buffer.
  void write(uint64_t offset, uint64_t bytes, const void* source) {
    if (bytes != 0)
      backend::check(hipMemcpy(as<uint8_t>() + offset, source, bytes,
                               hipMemcpyHostToDevice),
                     "hipMemcpy");
  }
  void read(uint64_t offset, uint64_t bytes, void* destination) const {
    if (bytes != 0)
      backend::check(hipMemcpy(destination, as<uint8_t>() + offset, bytes,
                               hipMemcpyDeviceToHost),
                     "hipMemcpy");
  }
  void fill(int byte) {
    if (bytes_ != 0)
      backend::check(hipMemset(data_, byte, bytes_), "hipMemset");
  }

 private:
  void* data_ = nullptr;  // device memory, or nullptr
  uint64_t bytes_ = 0;    // of it
};

}  // namespace exact_topk::kernels
