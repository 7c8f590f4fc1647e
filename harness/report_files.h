// SPDX-License-Identifier: Apache-2.0
//
// The report files that a run was asked for (--json, --junit, --shrink): opened
// before anything else, so that a run that ends early can still say so in them.
#pragma once

#include <optional>

#include "harness/output.h"
#include "harness/report.h"
#include "harness/settings.h"

namespace exact_topk::harness {

class ReportFiles {
 public:
  // An exception for a path that cannot be written; those before it stay open.
  // Where one names a file that the run reads or a place in its tree, none is.
  void open(const Settings& settings);
  void write(const Report& report) const;
  // The file of --shrink, which is left alone where nothing is written.
  void write_shrunk(const std::string& capture) const;

 private:
  std::optional<ReportFile> json_;    // where asked for
  std::optional<ReportFile> junit_;   // where asked for
  std::optional<ReportFile> csv_;     // where asked for
  std::optional<ReportFile> shrink_;  // where asked for
};

}  // namespace exact_topk::harness
