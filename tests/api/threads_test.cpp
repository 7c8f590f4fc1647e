// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/api/support.h"

namespace exact_topk::tests {
namespace {

// Threads check rows of their own, of which every second is wrong in a way of
// its own, all through the same entry points at once.
TEST(Threads, EachGetsItsOwnVerdict) {
  constexpr int kThreads = 8, kRounds = 50;
  std::atomic<int> waiting{kThreads};
  std::vector<std::string> faults(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::size_t n = 200 + static_cast<std::size_t>(t);
      std::vector<float> scores(n);
      for (std::size_t j = 0; j < n; ++j) scores[j] = static_cast<float>(j + 1);
      const ScaleRow row(scores);
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      for (int round = 0;
           round < kRounds && faults[static_cast<std::size_t>(t)].empty();
           ++round) {
        const bool wrong = (round + t) % 2 == 1;
        const int best = static_cast<int>(n) - 1;
        const Called list = check_list(scores, {best, wrong ? t : best - 1}, 2);
        if (list.result.held == wrong ||
            list.result.first_position != (wrong ? t : -1) ||
            list.sentence.empty() == wrong)
          faults[static_cast<std::size_t>(t)] = "list: " + list.sentence;
        std::vector<float> own = scores;
        if (wrong) own[static_cast<std::size_t>(t)] += 1;
        const Called judged = check_scores(scores_of(own), row.source());
        if (judged.result.held == wrong ||
            judged.result.first_position != (wrong ? t : -1))
          faults[static_cast<std::size_t>(t)] = "scores: " + judged.sentence;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, std::vector<std::string>(kThreads));
}

}  // namespace
}  // namespace exact_topk::tests
