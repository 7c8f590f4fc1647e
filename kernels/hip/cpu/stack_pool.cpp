// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/stack_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "kernels/hip/cpu/sanitizer.h"

namespace exact_topk::hip::cpu {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* map(void* at, std::size_t bytes, int flags) {
  void* const begin =
      mmap(at, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return begin;
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes)
    : bytes_((bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  auto* const mapping =
      static_cast<std::byte*>(map(nullptr, bytes_ + page_bytes(), 0));
  if (mprotect(mapping, page_bytes(), PROT_NONE) !=
      0) {  // the count of mappings is bounded, too
    munmap(mapping, bytes_ + page_bytes());
    throw std::bad_alloc();
  }
  begin_ = mapping + page_bytes();
}

GuardedMemory::~GuardedMemory() {
  if (begin_ == nullptr) return;
  sanitizer::unpoison(begin_, bytes_);
  munmap(begin_ - page_bytes(), bytes_ + page_bytes());
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_) {}

void GuardedMemory::forget() {
  sanitizer::unpoison(begin_, bytes_);
  // ThreadSanitizer drops its history of an address range only when the range
  // is mapped anew.
  if constexpr (sanitizer::kThread) map(begin_, bytes_, MAP_FIXED);
}

}  // namespace exact_topk::hip::cpu
