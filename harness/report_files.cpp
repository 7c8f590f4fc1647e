// SPDX-License-Identifier: Apache-2.0
#include "harness/report_files.h"

#include <fmt/format.h>

#include "dumps/paths.h"
#include "harness/failure.h"
#include "harness/report_json.h"
#include "harness/report_junit.h"

namespace exact_topk::harness {
namespace {

// UsageError for a report that would replace a file of the run's.
void check_place(const char* option, const std::string& path,
                 const Settings& settings) {
  if (path.empty()) return;
  for (const std::filesystem::path& input : settings.inputs)
    if (dumps::same_file(path, input))
      throw UsageError(fmt::format("{} {} cannot be written: the run reads it",
                                   option, path));
  if (!settings.dump.empty() && dumps::lies_in(path, settings.dump))
    throw UsageError(
        fmt::format("{} {} cannot be written: it lies in the tree --dump {}",
                    option, path, settings.dump));
}

void check_apart(const char* option, const std::string& path, const char* other,
                 const std::string& other_path) {
  if (!path.empty() && !other_path.empty() &&
      dumps::same_file(path, other_path))
    throw UsageError(
        fmt::format("{} and {} both name {}", option, other, path));
}

// A line a time; names hold no comma.
std::string times_csv(const Report& report) {
  std::string text =
      "case,arm,part,mean_us,first_us,second_us,floor_us,flagged,clock\n";
  for (const CaseResult& c : report.cases)
    for (const PartTime& t : c.times)
      text += fmt::format(
          "{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{},{}\n", c.name, t.arm, t.part,
          t.mean(), t.first, t.second, t.floor, t.flagged() ? 1 : 0,
          report.candidate.device == "cpu" ? "simulator" : "device");
  return text;
}

}  // namespace

void ReportFiles::open(const Settings& settings) {
  check_place("--json", settings.json, settings);
  check_place("--junit", settings.junit, settings);
  check_place("--csv", settings.csv, settings);
  check_place("--shrink", settings.shrink, settings);
  check_apart("--json", settings.json, "--junit", settings.junit);
  check_apart("--json", settings.json, "--shrink", settings.shrink);
  check_apart("--junit", settings.junit, "--shrink", settings.shrink);
  if (!settings.json.empty()) json_.emplace("--json", settings.json);
  if (!settings.junit.empty()) junit_.emplace("--junit", settings.junit);
  if (!settings.csv.empty()) csv_.emplace("--csv", settings.csv);
  if (!settings.shrink.empty()) shrink_.emplace("--shrink", settings.shrink);
}

void ReportFiles::write_shrunk(const std::string& capture) const {
  shrink_->write(capture);
}

void ReportFiles::write(const Report& report) const {
  if (csv_) csv_->write(times_csv(report));
  if (json_) json_->write(report_json(report));
  if (junit_) junit_->write(report_junit(report));
}

}  // namespace exact_topk::harness
