// SPDX-License-Identifier: Apache-2.0
#include "harness/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace exact_topk::harness {

int usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0
             ? std::max(1, CPU_COUNT(&set))
             : 1;
}

void parallel_for(int64_t count, int threads,
                  const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t failed = count;  // the lowest index that threw
  std::exception_ptr error;
  const auto take = [&] {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
        next = count;
      }
    }
  };
  std::vector<std::jthread> others;
  for (int64_t t = 1; t < std::min<int64_t>(threads, count); ++t)
    others.emplace_back(take);
  take();
  others.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace exact_topk::harness
