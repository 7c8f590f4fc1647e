// SPDX-License-Identifier: Apache-2.0
#include "harness/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace exact_topk::harness {

bool PartTime::flagged() const {
  constexpr double kShare = 0.02;
  constexpr double kMicroseconds = 0.8;
  const double apart = std::abs(first - second);
  return apart > kMicroseconds && apart > kShare * mean();
}

void to_json(nlohmann::json& json, const PartTime& t) {
  json = {{"arm", t.arm},           {"part", t.part},       {"first", t.first},
          {"second", t.second},     {"floor", t.floor},     {"mean", t.mean()},
          {"flagged", t.flagged()}, {"claimed", t.claimed}, {"wall", t.wall}};
}

void from_json(const nlohmann::json& json, PartTime& t) {
  json.at("arm").get_to(t.arm);
  json.at("part").get_to(t.part);
  json.at("first").get_to(t.first);
  json.at("second").get_to(t.second);
  json.at("floor").get_to(t.floor);
  json.at("claimed").get_to(t.claimed);
  json.at("wall").get_to(t.wall);
}

std::string wall_fault(const PartTime& t) {
  constexpr double kShare = 0.05;
  if (std::abs(t.wall - t.claimed) <= kShare * t.wall) return "";
  return fmt::format(
      "a replay took {:.2f} us by the clock and {:.2f} us by the candidate's "
      "word, more than 5% apart",
      t.wall, t.claimed);
}

int long_replays(double microseconds, int least) {
  constexpr double kLong = 50'000;  // microseconds in all
  constexpr int kMost = 100'000;
  if (!(microseconds * kMost > kLong)) return std::max(least, kMost);
  return std::max(least, static_cast<int>(std::ceil(kLong / microseconds)));
}

std::string text_differences(const std::vector<PartTime>& times) {
  std::string text;
  for (const PartTime& t : times) {
    const auto first =
        std::find_if(times.begin(), times.end(),
                     [&](const PartTime& f) { return f.part == t.part; });
    if (first->arm == t.arm || t.part == kEmpty) continue;
    const double more = t.mean() - first->mean();
    text += fmt::format(
        "change     {:<14} {:<14} {:>+9.2f} us  {:>+6.1f}% of {}\n", t.arm,
        t.part, more, 100 * more / first->mean(), first->arm);
  }
  return text;
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

}  // namespace exact_topk::harness
