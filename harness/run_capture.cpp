// SPDX-License-Identifier: Apache-2.0
#include "harness/run_capture.h"

#include <errno.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "harness/capture.h"
#include "harness/check_capture.h"
#include "harness/output.h"
#include "harness/parallel.h"
#include "harness/report_files.h"
#include "harness/report_text.h"
#include "harness/repro.h"
#include "harness/status.h"
#include "harness/together.h"

namespace exact_topk::harness {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string text_capture(const Capture& capture, const CaptureRules& rules,
                         const Report& report) {
  return fmt::format(
      "capture    {}: {} rows of up to {} keys, k {}, {}\n"
      "contract   {}{}{}, the capture says {}\n"
      "ranks      {}, threads {}, processors {}\n",
      capture.path(), capture.rows(), capture.longest(), capture.k(),
      capture.has_query()
          ? fmt::format("scores of {} heads", capture.geometry().heads)
          : "no query",
      oracle::to_string(rules.contract),
      rules.values.nan_last ? ", NaN last" : "",
      rules.values.zeros_equal ? ", zeros equal" : "",
      oracle::to_string(capture.contract()), report.environment.ranks,
      rules.threads, report.environment.binding);
}

// The rows of all ranks, judged.
CaseResult check_together(const Group& world, const Capture& capture,
                          const CaptureRules& rules) {
  const CaseResult mine =
      check_capture(capture, rules, world.share(capture.rows()));
  std::vector<CaseResult> parts;
  for (const std::string& part : world.all_gather(nlohmann::json(mine).dump(
           -1, ' ', false, nlohmann::json::error_handler_t::replace)))
    parts.push_back(nlohmann::json::parse(part).get<CaseResult>());
  return merge(parts);
}

}  // namespace

int run_capture(const Group& world, const Settings& settings) {
  const Clock::time_point begin = Clock::now();
  const bool first = world.rank() == 0;
  ReportFiles files;
  Report report;
  report.candidate.name = "capture";
  report.tp = {1};
  try {
    together(world, [&] { files.open(settings); });
    report.environment = environment();
    std::optional<Capture> capture;
    CaptureRules rules{
        {}, settings.values, settings.bound, usable_processors()};
    together(world, [&] {
      capture.emplace(settings.capture);
      rules.contract = contract_of(settings, capture->contract());
    });
    const std::string repro = capture_repro_line(settings, world);
    if (first) print(text_capture(*capture, rules, report) + text_run(repro));
    CaseResult result = check_together(world, *capture, rules);
    result.name = "capture=" + settings.capture;
    result.repro = repro;
    result.seconds = Seconds(Clock::now() - begin).count();
    if (first) print(text_result(result));
    report.cases = {result};
    report.seconds = result.seconds;
    together(world, [&] {
      if (first) files.write(report);
    });
  } catch (const Ended& ended) {
    report.error = ended.sentence;
    if (first) {
      fmt::print(stderr, "{}: {}\n", program_invocation_short_name,
                 ended.sentence);
      try {
        files.write(report);
      } catch (const std::exception&) {
        // The run has its sentence; a report is written where its path allows.
      }
    }
    return ended.status;
  }
  if (first) print(text_summary(report));
  return status(report);
}

}  // namespace exact_topk::harness
