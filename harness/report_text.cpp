// SPDX-License-Identifier: Apache-2.0
#include "harness/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace exact_topk::harness {
namespace {

constexpr std::array kOutcomes = {Outcome::kPassed, Outcome::kFailed,
                                  Outcome::kSkipped, Outcome::kUntested,
                                  Outcome::kMistrusted};

// One check over all cases.
struct CheckLine {
  std::string name;  // of the check
  int64_t made = 0;  // how often
  std::array<int64_t, kOutcomes.size()>
      cases{};  // cases by outcome, as in kOutcomes
};

std::vector<CheckLine> by_check(const Report& report) {
  std::vector<CheckLine> lines;
  for (const CaseResult& c : report.cases)
    for (const CheckResult& check : c.checks) {
      auto line = std::find_if(
          lines.begin(), lines.end(),
          [&](const CheckLine& l) { return l.name == check.name; });
      if (line == lines.end())
        line = lines.insert(lines.end(), CheckLine{.name = check.name});
      line->made += check.run;
      const auto outcome =
          std::find(kOutcomes.begin(), kOutcomes.end(), check.outcome) -
          kOutcomes.begin();
      ++line->cases[static_cast<size_t>(outcome)];
    }
  return lines;
}

}  // namespace

std::string text_configuration(const Report& report, const Settings& settings,
                               int64_t cases, int groups) {
  const CandidateInfo& c = report.candidate;
  const Environment& e = report.environment;
  std::string text =
      fmt::format("candidate  {} {} (abi {}), arm {}, device {}\n", c.name,
                  c.version, c.abi, c.arm, c.device);
  text += fmt::format("ranks      {} in {} {}, TP {}, processors {}\n", e.ranks,
                      groups, groups == 1 ? "group" : "groups",
                      fmt::join(report.tp, ","), e.binding);
  text += fmt::format(
      "settings   seed {}, bound {:g}, repeat {}, wave {}, blocks {}, schedule "
      "{}\n",
      settings.seed, settings.bound, settings.repeat,
      settings.wave == 0 ? "default" : std::to_string(settings.wave),
      settings.blocks == 0 ? "default" : std::to_string(settings.blocks),
      settings.schedule.empty() ? "default" : settings.schedule);
  text += fmt::format("built      commit {}, {}, {}, on {}\n", e.commit,
                      e.compiler, e.mpi, e.host);
  if (const auto& timing = settings.timing)
    text += fmt::format(
        "timing     {}, L2 {}; mean of two passes, each the median of {} "
        "trials "
        "of {} replays; floors assume {:g} GB/s and {:g} TFLOP/s\n",
        c.device == "cpu" ? "simulator time, not a kernel time"
                          : "replay between events",
        timing->cold ? "cold" : "warm", timing->trials, timing->replays,
        timing->hbm, timing->tflops);
  text += fmt::format("cases      {}\n", cases);
  return text;
}

std::string text_run(const std::string& repro) {
  return fmt::format("run        {}\n", repro);
}

std::string text_result(const CaseResult& r) {
  std::string text = fmt::format("{:<10} {}", to_string(r.verdict), r.name);
  if (r.verdict != Outcome::kSkipped)
    text += fmt::format(
        " error={:.3g} ratio={:.3g} missed={} order_errors={} controls={}/{} "
        "seconds={:.2f}",
        r.max_score_error, r.max_bound_ratio, r.missed, r.order_errors,
        r.controls_caught, r.controls_run, r.seconds);
  text += '\n';
  if (!r.reason.empty()) text += fmt::format("           {}\n", r.reason);
  for (const CheckResult& c : r.checks)
    if (c.outcome == Outcome::kFailed && !r.reason.ends_with(c.reason))
      text += fmt::format("           {}: {} of {} failed: {}\n", c.name,
                          c.failed, c.run, c.reason);
  for (const std::string& line : r.diagnosis)
    text += fmt::format("           {}\n", line);
  for (const PartTime& t : r.times)
    text += fmt::format(
        "time       {:<14} {:<14} {:>9.2f} us  passes {:.2f} {:.2f}{}{}\n",
        t.arm, t.part, t.mean(), t.first, t.second,
        t.floor > 0 ? fmt::format("  floor {:.2f}", t.floor) : "",
        t.flagged() ? "  passes apart" : "");
  text += text_differences(r.times);
  if (const std::string levels = to_string(r.levels); !levels.empty())
    text += fmt::format("           levels: {}\n", levels);
  return text;
}

std::string text_summary(const Report& report) {
  std::string text;
  const Counts n = count(report);
  for (const auto& [arm, paths] : n.paths)
    if (paths != Paths{})
      text += fmt::format("paths      {}: {}\n", arm,
                          fmt::join(paths.names(), ", "));
  const std::vector<CheckLine> lines = by_check(report);
  if (!lines.empty()) {
    size_t width = 5;
    for (const CheckLine& line : lines)
      width = std::max(width, line.name.size());
    text += fmt::format("\n{:<{}} {:>9} {:>7} {:>7} {:>7} {:>9} {:>11}\n",
                        "check", width, "made", "passed", "failed", "skipped",
                        "untested", "mistrusted");
    for (const CheckLine& line : lines)
      text +=
          fmt::format("{:<{}} {:>9} {:>7} {:>7} {:>7} {:>9} {:>11}\n",
                      line.name, width, line.made, line.cases[0], line.cases[1],
                      line.cases[2], line.cases[3], line.cases[4]);
    text += '\n';
  }
  for (const CaseResult& c : report.cases)
    if (c.verdict == Outcome::kFailed || c.verdict == Outcome::kMistrusted)
      text += fmt::format("{:<10} {}\n           {}\n           {}\n",
                          to_string(c.verdict), c.name, c.reason, c.repro);
  text += fmt::format(
      "verdict    {}: {} cases, {} failed, {} skipped, {} mistrusted; {} "
      "checks, {} untested; {} of {} controls caught; "
      "largest score error {:.3g}, missed {}, order errors {}; {:.1f} s\n",
      verdict(report), n.cases, n.failed, n.skipped, n.mistrusted, n.checks,
      n.untested, n.controls_caught, n.controls_run, n.max_score_error,
      n.missed, n.order_errors, report.seconds);
  return text;
}

}  // namespace exact_topk::harness
