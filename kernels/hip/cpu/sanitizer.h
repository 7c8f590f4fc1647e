// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the sanitizers must be told about fibers, guards and collectives;
// nothing at all in a plain build.
//
// EXACT_TOPK_ASAN and EXACT_TOPK_TSAN come from CMake rather than from the
// compiler, because under ThreadSanitizer the runtime itself is compiled
// without instrumentation and still has to announce its fibers.

#include <cstddef>
#include <cstdint>

#if defined(EXACT_TOPK_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(EXACT_TOPK_TSAN)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_read_range(void* begin, unsigned long bytes);
}
#endif

namespace exact_topk::hip::cpu::sanitizer {

#if defined(EXACT_TOPK_ASAN)
inline constexpr bool kAddress = true;
#else
inline constexpr bool kAddress = false;
#endif
#if defined(EXACT_TOPK_TSAN)
inline constexpr bool kThread = true;
#else
inline constexpr bool kThread = false;
#endif

/// Makes any access to the bytes an AddressSanitizer error: reads past an
/// allocation are seen too, not only writes.
inline void poison([[maybe_unused]] const void* begin,
                   [[maybe_unused]] std::size_t bytes) {
#if defined(EXACT_TOPK_ASAN)
  __asan_poison_memory_region(begin, bytes);
#endif
}

/// Takes poison() back; also clears what the frames of an abandoned fiber left
/// on its stack.
inline void unpoison([[maybe_unused]] const void* begin,
                     [[maybe_unused]] std::size_t bytes) {
#if defined(EXACT_TOPK_ASAN)
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

/// Everything this thread did becomes visible to whoever acquires the same
/// object.
inline void release([[maybe_unused]] void* object) {
#if defined(EXACT_TOPK_TSAN)
  __tsan_release(object);
#endif
}

/// Sees everything released on the object.
inline void acquire([[maybe_unused]] void* object) {
#if defined(EXACT_TOPK_TSAN)
  __tsan_acquire(object);
#endif
}

/// Tells the race detector that this thread reads the bytes, for code that it
/// cannot see into.
inline void announce_read([[maybe_unused]] const void* begin,
                          [[maybe_unused]] std::size_t bytes) {
#if defined(EXACT_TOPK_TSAN)
  __tsan_read_range(const_cast<void*>(begin), bytes);
#endif
}

/// While it lives, the race detector ignores this thread's accesses: a
/// collective is computed by one lane on behalf of the others and orders no
/// memory, as on a GPU.
class Ignore {
 public:
  Ignore() {
#if defined(EXACT_TOPK_TSAN)
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~Ignore() {
#if defined(EXACT_TOPK_TSAN)
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  Ignore(const Ignore&) = delete;
  Ignore& operator=(const Ignore&) = delete;
};

}  // namespace exact_topk::hip::cpu::sanitizer
