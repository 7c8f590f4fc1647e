// SPDX-License-Identifier: Apache-2.0
//
// Drives an open candidate through the passes of timing.h: two over the arms,
// the second in the other order, each part readied before and looked at after.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/open_candidate.h"
#include "harness/timing.h"

namespace exact_topk::harness {

// A candidate's work that is timed, and what surrounds it.
struct Timed {
  Candidate& candidate;
  Replayed what;                   // by each replay
  std::vector<std::string> arms;   // in the order of the first pass
  std::vector<std::string> parts;  // "whole" and those of xtk_replay_args
  // Makes an arm's calls the last ones, so that they are what replays repeat,
  // and takes away what replays of the part must leave.
  std::function<void(const std::string& arm, const std::string& part)> ready;
  // Looks at what they left.
  std::function<void(const std::string& arm, const std::string& part)> check;
};

// Every part of every arm, but for parts that the candidate does not have. The
// whole of each arm also runs as one long replay by the clock.
std::vector<PartTime> time_parts(const Timed& timed, const Timing& timing);

}  // namespace exact_topk::harness
