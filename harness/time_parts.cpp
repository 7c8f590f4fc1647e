// SPDX-License-Identifier: Apache-2.0
#include "harness/time_parts.h"

namespace exact_topk::harness {

std::vector<PartTime> time_parts(const Timed& timed, const Timing& timing) {
  std::vector<PartTime> times;
  for (const std::string& arm : timed.arms)
    for (const std::string& part : timed.parts) times.push_back({arm, part});
  std::erase_if(times, [&](const PartTime& time) {
    timed.ready(time.arm, time.part);
    return !timed.candidate.has_part(timed.what, time.part);
  });

  const auto pass = [&](const std::string& arm, double PartTime::*result) {
    for (PartTime& time : times) {
      if (time.arm != arm) continue;
      timed.ready(arm, time.part);
      std::vector<double> trials;
      for (int trial = 0; trial < timing.trials; ++trial)
        trials.push_back(timed.candidate.replay(timed.what, time.part,
                                                timing.replays, timing.cold));
      time.*result = median(std::move(trials));
      timed.check(arm, time.part);
    }
  };
  for (const std::string& arm : timed.arms) pass(arm, &PartTime::first);
  for (auto arm = timed.arms.rbegin(); arm != timed.arms.rend(); ++arm)
    pass(*arm, &PartTime::second);

  for (PartTime& time : times) {
    if (time.part != kWhole) continue;
    timed.ready(time.arm, time.part);
    const auto [claimed, wall] = timed.candidate.replay_by_clock(
        timed.what, long_replays(time.mean(), timing.replays));
    time.claimed = claimed;
    time.wall = wall;
    timed.check(time.arm, time.part);
  }
  return times;
}

}  // namespace exact_topk::harness
