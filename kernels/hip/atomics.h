// SPDX-License-Identifier: Apache-2.0
#pragma once

// Handing small data from block to block inside a cooperative launch.
//
// A *tagged pair* is one 64-bit word: the payload in the low half, the launch's
// tag in the high half. It is stored and polled with relaxed atomics; because
// payload and tag travel in one word, no flag, fence or reset is needed. A pair
// orders nothing but itself. A *counter* orders: everything before
// counter_add_release is visible after counter_wait_acquire has seen it. On the
// CPU a wait lets the other threads run, and a wait that nobody can answer is
// reported as a deadlock that names the place of the poll.

#include "kernels/hip/hip.h"

#if defined(EXACT_TOPK_HIP_NVIDIA)
#include <cuda/atomic>
#endif
#include <stdint.h>

namespace exact_topk::hip {

namespace detail {
#if defined(EXACT_TOPK_HIP_AMD)
template <class T>
__device__ inline T load_relaxed(const T* p) {
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
__device__ inline T load_acquire(const T* p) {
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
__device__ inline void store_relaxed(T* p, T value) {
  __hip_atomic_store(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
__device__ inline void store_release(T* p, T value) {
  __hip_atomic_store(p, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
__device__ inline T add_release(T* p, T value) {
  return __hip_atomic_fetch_add(p, value, __ATOMIC_RELEASE,
                                __HIP_MEMORY_SCOPE_AGENT);
}
#elif defined(EXACT_TOPK_HIP_NVIDIA)
template <class T>
__device__ inline cuda::atomic_ref<T, cuda::thread_scope_device> atomic(
    const T* p) {
  return cuda::atomic_ref<T, cuda::thread_scope_device>(*const_cast<T*>(p));
}
template <class T>
__device__ inline T load_relaxed(const T* p) {
  return atomic(p).load(cuda::memory_order_relaxed);
}
template <class T>
__device__ inline T load_acquire(const T* p) {
  return atomic(p).load(cuda::memory_order_acquire);
}
template <class T>
__device__ inline void store_relaxed(T* p, T value) {
  atomic(p).store(value, cuda::memory_order_relaxed);
}
template <class T>
__device__ inline void store_release(T* p, T value) {
  atomic(p).store(value, cuda::memory_order_release);
}
template <class T>
__device__ inline T add_release(T* p, T value) {
  return atomic(p).fetch_add(value, cuda::memory_order_release);
}
#else
template <class T>
T load_relaxed(const T* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
T load_acquire(const T* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
void store_relaxed(T* p, T value) {
  __atomic_store_n(p, value, __ATOMIC_RELAXED);
}
template <class T>
void store_release(T* p, T value) {
  __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
template <class T>
T add_release(T* p, T value) {
  return __atomic_fetch_add(p, value, __ATOMIC_RELEASE);
}
#endif
}  // namespace detail

#if defined(EXACT_TOPK_HIP_CPU)
/// Waits until ready() holds; ready reads memory through atomics and writes
/// nothing.
template <class Ready>
void poll_until(const Ready& ready, cpu::Site site = cpu::Site::here()) {
  while (!ready())
    cpu::wait_until(
        [](const void* arg) { return (*static_cast<const Ready*>(arg))(); },
        &ready, site);
}
#define EXACT_TOPK_SITE_PARAMETER , cpu::Site site = cpu::Site::here()
#define EXACT_TOPK_SITE_ARGUMENT , site
#else
template <class Ready>
__device__ inline void poll_until(const Ready& ready) {
  while (!ready()) {
  }
}
#define EXACT_TOPK_SITE_PARAMETER
#define EXACT_TOPK_SITE_ARGUMENT
#endif

/// Stores a tagged pair.
__device__ inline void pair_store(uint64_t* pair, uint32_t payload,
                                  uint32_t tag) {
  detail::store_relaxed(pair, uint64_t{tag} << 32 | payload);
}

/// Whether the pair carries this tag by now.
__device__ inline bool pair_ready(const uint64_t* pair, uint32_t tag) {
  return static_cast<uint32_t>(detail::load_relaxed(pair) >> 32) == tag;
}

/// Waits for the tag and returns the payload.
__device__ inline uint32_t pair_poll(const uint64_t* pair,
                                     uint32_t tag EXACT_TOPK_SITE_PARAMETER) {
  uint64_t word = 0;
  poll_until([&] {
    word = detail::load_relaxed(pair);
    return static_cast<uint32_t>(word >> 32) == tag;
  } EXACT_TOPK_SITE_ARGUMENT);
  return static_cast<uint32_t>(word);
}

/// Stores a tagged pair and makes what this thread did before visible to
/// whoever waits for it with pair_wait_acquire.
__device__ inline void pair_store_release(uint64_t* pair, uint32_t payload,
                                          uint32_t tag) {
  detail::store_release(pair, uint64_t{tag} << 32 | payload);
}

/// Waits for the tag; what its storer did before is visible then.
__device__ inline void pair_wait_acquire(
    const uint64_t* pair, uint32_t tag EXACT_TOPK_SITE_PARAMETER) {
  poll_until([&] {
    return static_cast<uint32_t>(detail::load_acquire(pair) >> 32) == tag;
  } EXACT_TOPK_SITE_ARGUMENT);
}

/// Stores a word for readers after the launch. Whether blocks of this launch
/// see it is open; on the CPU none does, so that whoever counts on it is found
/// out.
__device__ inline void store_for_later(uint32_t* p, uint32_t value) {
#if defined(EXACT_TOPK_HIP_CPU)
  cpu::store_late(p, value);
#else
  detail::store_relaxed(p, value);
#endif
}

/// Sixteen bytes that another block may be storing with relaxed order
/// meanwhile: each word is old or new.
__device__ inline uint4 load_racing(const uint4* p) {
#if defined(EXACT_TOPK_HIP_CPU)
  const auto* words = reinterpret_cast<const uint64_t*>(p);
  const uint64_t low = detail::load_relaxed(words);
  const uint64_t high = detail::load_relaxed(words + 1);
  return {static_cast<unsigned>(low), static_cast<unsigned>(low >> 32),
          static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)};
#else
  return *p;  // one vector load; nothing else would be 16 bytes wide
#endif
}

/// Adds to a counter and makes what this thread did before visible to whoever
/// waits for it. Returns the old value.
__device__ inline uint32_t counter_add_release(uint32_t* counter,
                                               uint32_t value) {
  return detail::add_release(counter, value);
}

/// Waits until the counter has reached `target`, counting modulo 2^32 (at most
/// 2^31 apart).
__device__ inline void counter_wait_acquire(
    const uint32_t* counter, uint32_t target EXACT_TOPK_SITE_PARAMETER) {
  poll_until([&] {
    return static_cast<int32_t>(detail::load_acquire(counter) - target) >= 0;
  } EXACT_TOPK_SITE_ARGUMENT);
}

#undef EXACT_TOPK_SITE_PARAMETER
#undef EXACT_TOPK_SITE_ARGUMENT

}  // namespace exact_topk::hip
