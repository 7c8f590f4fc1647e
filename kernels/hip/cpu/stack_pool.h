// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of fibers: stacks and LDS, each mapping with an inaccessible page
// below it, kept between launches.

#include <cstddef>
#include <span>

namespace exact_topk::hip::cpu {

/// One guarded mapping, unmapped with the object.
class GuardedMemory {
 public:
  /// Throws std::bad_alloc where Linux grants no more.
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  std::span<std::byte> bytes() const { return {begin_, bytes_}; }
  /// Gives the memory to a new owner: sanitizers forget what the last one did
  /// there.
  void forget();

 private:
  std::byte* begin_;   // first usable byte, one page above the mapping's start
  std::size_t bytes_;  // usable bytes, whole pages
};

}  // namespace exact_topk::hip::cpu
