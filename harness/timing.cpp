// SPDX-License-Identifier: Apache-2.0
#include "harness/timing.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/open_candidate.h"

namespace exact_topk::harness {

bool PartTime::flagged() const {
  constexpr double kShare = 0.02;
  constexpr double kMicroseconds = 0.8;
  const double apart = std::abs(first - second);
  return apart > kMicroseconds && apart > kShare * mean();
}

void to_json(nlohmann::json& json, const PartTime& t) {
  json = {{"arm", t.arm},          {"part", t.part},   {"first", t.first},
          {"second", t.second},    {"floor", t.floor}, {"mean", t.mean()},
          {"flagged", t.flagged()}};
}

void from_json(const nlohmann::json& json, PartTime& t) {
  json.at("arm").get_to(t.arm);
  json.at("part").get_to(t.part);
  json.at("first").get_to(t.first);
  json.at("second").get_to(t.second);
  json.at("floor").get_to(t.floor);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double floor_of(const Work& work, const Timing& timing) {
  return std::max(work.bytes / (timing.hbm * 1e3),
                  work.flops / (timing.tflops * 1e6));
}

std::vector<PartTime> time_parts(
    Candidate& candidate, xtk_stage stage, const std::vector<std::string>& arms,
    const std::vector<std::string>& parts, const Timing& timing,
    const std::function<void(const std::string&)>& ready,
    const std::function<void(const std::string&)>& check) {
  std::vector<PartTime> times;
  for (const std::string& arm : arms)
    for (const std::string& part : parts) times.push_back({arm, part});
  const auto pass = [&](size_t a, double PartTime::*result) {
    ready(arms[a]);
    for (size_t p = 0; p < parts.size(); ++p) {
      std::vector<double> trials;
      for (int trial = 0; trial < timing.trials; ++trial)
        trials.push_back(
            candidate.replay(stage, parts[p], timing.replays, timing.cold));
      times[a * parts.size() + p].*result = median(std::move(trials));
      if (parts[p] == "whole") check(arms[a]);
    }
  };
  for (size_t a = 0; a < arms.size(); ++a) pass(a, &PartTime::first);
  for (size_t a = arms.size(); a-- > 0;) pass(a, &PartTime::second);
  return times;
}

}  // namespace exact_topk::harness
