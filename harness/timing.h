// SPDX-License-Identifier: Apache-2.0
//
// Timing a launch by replay (time_topk, SPEC section 9). A figure is the mean
// of two passes over the arms, the second in the other order, each the median
// of some trials of many replays between two events of the device.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace exact_topk::harness {

inline constexpr const char* kWhole = "whole";  // all parts of a call
inline constexpr const char* kEmpty =
    "empty";  // no work, launched all the same

// What is timed, and how.
struct Timing {
  int trials = 7;          // a pass
  int replays = 50;        // a trial
  bool cold = false;       // evict the L2 before each replay
  bool simulator = false;  // numbers of a device "cpu" are wanted all the same
  double hbm = 4573;       // GB/s that a floor assumes; measured on an H200
  double tflops = 790;     // TFLOP/s likewise, bf16 matrices
};

// The time of one part of one arm. Times are microseconds.
struct PartTime {
  std::string arm;
  std::string part;   // "whole", or a part as xtk_replay_args spells it
  double first = 0;   // median of the first pass
  double second = 0;  // of the second
  double floor = 0;  // what the bytes and the matrix work take at best, without
                     // the launch; 0: none is known
  double claimed = 0;  // a replay of the long replay, by the candidate's word
  double wall = 0;     // by this process's clock; 0: there was no long replay

  double mean() const { return (first + second) / 2; }
  // The passes are further apart than noise: more than 2% and 0.8 us.
  bool flagged() const;
  bool operator==(const PartTime&) const = default;
};

void to_json(nlohmann::json& json, const PartTime& time);
void from_json(const nlohmann::json& json, PartTime& time);

// One sentence where the candidate's word and the clock differ by more than 5%
// of the clock over the long replay; else empty.
std::string wall_fault(const PartTime& time);

// Replays that make a long one of a part that takes so many microseconds.
int long_replays(double microseconds, int least);

// "each change on its own": one line for each arm after the first, and part,
// with what it takes less or more than the first arm's. Empty for one arm.
std::string text_differences(const std::vector<PartTime>& times);

// The median: of an even number, the mean of the middle two. `values` is not
// empty.
double median(std::vector<double> values);

// What a part must do at least.
struct Work {
  double bytes = 0;  // read from memory
  double flops = 0;  // of matrices
};
// Microseconds that it takes at the rates of `timing`.
double floor_of(const Work& work, const Timing& timing);

}  // namespace exact_topk::harness
