// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies from global memory to LDS that go on while the block works: a thread
// starts some, closes the group, and later waits for all but the newest groups
// of its own; a barrier then shows them to the block. Where a platform has no
// such copies they are done at once.

#include "kernels/hip/atomics.h"

namespace exact_topk::hip {

/// Sixteen bytes, both addresses on 16-byte boundaries. Another block may be
/// storing to the source meanwhile: each word is old or new.
__device__ inline void copy_start(void* lds, const void* global) {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(lds))),
               "l"(global)
               : "memory");
#else
  *static_cast<uint4*>(lds) = load_racing(static_cast<const uint4*>(global));
#endif
}

/// Closes the group of copies that this thread has started since the last call.
__device__ inline void copies_close() {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the newest `Newest` groups of this thread are under way.
template <int Newest>
__device__ inline void copies_wait() {
#if defined(EXACT_TOPK_HIP_NVIDIA)
  asm volatile("cp.async.wait_group %0;" ::"n"(Newest) : "memory");
#endif
}

}  // namespace exact_topk::hip
