// SPDX-License-Identifier: Apache-2.0
//
// Independent pieces of work on all processors that this process may use.
// Threads live for one call: pieces are rows of many thousand scores, next to
// which starting a thread costs nothing.
#pragma once

#include <cstdint>
#include <functional>

namespace exact_topk::harness {

// Processors that this process is bound to, at least 1.
int usable_processors();

// Calls work(0) .. work(count - 1), each once, in no order, on at most
// `threads` threads, the caller's among them. Where calls throw, the exception
// of the lowest index is rethrown after all threads have stopped.
void parallel_for(int64_t count, int threads,
                  const std::function<void(int64_t)>& work);

}  // namespace exact_topk::harness
