// SPDX-License-Identifier: Apache-2.0
//
// A regular file mapped read-only, so that large tensors are paged in where
// they are looked at and never copied whole. The bytes stay valid, at the same
// address, for the life of the object, through moves too. A file that somebody
// truncates while it is mapped ends the process with SIGBUS: mapping is for
// files at rest.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace exact_topk::dumps {

class MappedFile {
 public:
  // std::runtime_error naming the path where it cannot be opened, is no regular
  // file, or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const;  // the same bytes as characters

 private:
  std::span<const std::byte>
      bytes_;  // empty for an empty file, which is not mapped
};

}  // namespace exact_topk::dumps
