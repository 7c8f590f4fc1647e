// SPDX-License-Identifier: Apache-2.0
//
// The passes, on a candidate whose replays take what a script says.
#include "harness/time_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace exact_topk::harness {
namespace {

using ::testing::ElementsAre;

TEST(TimeParts, TwoPassesInAlternatingOrderEachTheMedianOfItsTrials) {
  // One replay a part to see whether it is there; then three trials of arm a
  // and of arm b; then of b and of a; then each by the clock, once.
  setenv("EXACT_TOPK_SCRIPT", "1 1  10 30 20  5 5 8  7 6 9  40 41 42  100 201",
         1);
  Candidate candidate(
      Library::open(EXACT_TOPK_BINARY_DIR "/tests/scripted_candidate.so", 60),
      {});
  std::vector<std::string> readied, checked;
  Timing timing;
  timing.trials = 3;
  const std::vector<PartTime> times =
      time_parts({candidate,
                  {XTK_STAGE_SELECT},
                  {"a", "b"},
                  {kWhole, "front"},
                  [&](const std::string& arm, const std::string& part) {
                    readied.push_back(arm + ' ' + part);
                  },
                  [&](const std::string& arm, const std::string& part) {
                    checked.push_back(arm + ' ' + part);
                  }},
                 timing);
  ASSERT_EQ(times.size(), 2u) << "the candidate has no part front";
  EXPECT_EQ(times[0].arm, "a");
  EXPECT_EQ(times[0].part, kWhole);
  EXPECT_EQ(times[0].first, 20);
  EXPECT_EQ(times[0].second, 41);
  EXPECT_TRUE(times[0].flagged());
  EXPECT_EQ(times[0].claimed, 100);
  EXPECT_EQ(times[1].arm, "b");
  EXPECT_EQ(times[1].first, 5);
  EXPECT_EQ(times[1].second, 7);
  EXPECT_EQ(times[1].mean(), 6);
  EXPECT_EQ(times[1].claimed, 201);
  EXPECT_NE(wall_fault(times[1]), "");
  EXPECT_THAT(readied, ElementsAre("a whole", "a front", "b whole", "b front",
                                   "a whole", "b whole", "b whole", "a whole",
                                   "a whole", "b whole"));
  EXPECT_THAT(checked, ElementsAre("a whole", "b whole", "b whole", "a whole",
                                   "a whole", "b whole"));
}

}  // namespace
}  // namespace exact_topk::harness
