// SPDX-License-Identifier: Apache-2.0
#include "harness/report_files.h"

#include <filesystem>

#include "harness/failure.h"
#include "harness/report_json.h"
#include "harness/report_junit.h"

namespace exact_topk::harness {

void ReportFiles::open(const Settings& settings) {
  const auto place = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (!settings.json.empty() && !settings.junit.empty() &&
      place(settings.json) == place(settings.junit))
    throw UsageError("--json and --junit both name " + settings.json);
  if (!settings.json.empty()) json_.emplace("--json", settings.json);
  if (!settings.junit.empty()) junit_.emplace("--junit", settings.junit);
}

void ReportFiles::write(const Report& report) const {
  if (json_) json_->write(report_json(report));
  if (junit_) junit_->write(report_junit(report));
}

}  // namespace exact_topk::harness
