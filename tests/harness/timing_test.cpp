// SPDX-License-Identifier: Apache-2.0
//
// The statistics of timing on numbers worked out by hand, and the long replay
// against a candidate that does not tell the truth.
#include "harness/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace exact_topk::harness {
namespace {

using ::testing::HasSubstr;

TEST(Timing, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({8, 1, 4, 6}), 5);
}

PartTime passes(double first, double second) {
  PartTime time;
  time.first = first;
  time.second = second;
  return time;
}

TEST(Timing, PassesAreFlaggedWhereBothMarginsArePassed) {
  EXPECT_EQ(passes(10, 12).mean(), 11);
  EXPECT_FALSE(passes(10, 10.75).flagged()) << "7%, but 0.75 us";
  EXPECT_FALSE(passes(100, 101.5).flagged()) << "1.5 us, but 1.5%";
  EXPECT_TRUE(passes(10, 11).flagged());
  EXPECT_TRUE(passes(11, 10).flagged());
  EXPECT_TRUE(passes(100, 103).flagged());
}

TEST(Timing, FloorIsTheLargerOfBytesAndMatrixWork) {
  Timing timing;
  timing.hbm = 1000;  // GB/s: 1 us for 1e6 bytes
  timing.tflops = 2;  // 1 us for 2e6 operations
  EXPECT_DOUBLE_EQ(floor_of({3e6, 2e6}, timing), 3);
  EXPECT_DOUBLE_EQ(floor_of({1e6, 1e7}, timing), 5);
}

PartTime clocked(double claimed, double wall) {
  PartTime time;
  time.claimed = claimed;
  time.wall = wall;
  return time;
}

TEST(Timing, TheClockMayDifferByFivePercent) {
  EXPECT_EQ(wall_fault(clocked(95.5, 100)), "");
  EXPECT_EQ(wall_fault(clocked(104.5, 100)), "");
  EXPECT_THAT(wall_fault(clocked(94.5, 100)),
              HasSubstr("100.00 us by the clock and 94.50 us"));
  EXPECT_THAT(wall_fault(clocked(106, 100)), HasSubstr("more than 5% apart"));
  EXPECT_NE(wall_fault(clocked(0, 100)), "");
}

TEST(Timing, LongReplaysTakeFiftyMilliseconds) {
  EXPECT_EQ(long_replays(10, 50), 5000);
  EXPECT_EQ(long_replays(30, 50), 1667);
  EXPECT_EQ(long_replays(1e5, 50), 50) << "at least a trial";
  EXPECT_EQ(long_replays(0, 50), 100'000) << "of a time that cannot be";
}

TEST(Timing, DifferencesAreToTheFirstArm) {
  const auto of = [](const char* arm, const char* part, double time) {
    PartTime made = passes(time, time);
    made.arm = arm;
    made.part = part;
    return made;
  };
  const std::string text =
      text_differences({of("base", "whole", 40), of("base", "empty", 2),
                        of("head", "whole", 30), of("head", "empty", 3)});
  EXPECT_THAT(text, HasSubstr("-10.00 us"));
  EXPECT_THAT(text, HasSubstr("-25.0% of base"));
  EXPECT_EQ(text.find("empty"), std::string::npos);
  EXPECT_EQ(text_differences({of("base", "whole", 40)}), "");
}

}  // namespace
}  // namespace exact_topk::harness
