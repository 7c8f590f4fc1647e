// SPDX-License-Identifier: Apache-2.0
//
// The report files that a run was asked for (--json, --junit): opened before
// anything else, so that a run that ends early can still say so in them.
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

 private:
  std::optional<ReportFile> json_;   // where asked for
  std::optional<ReportFile> junit_;  // where asked for
  std::optional<ReportFile> csv_;    // where asked for
};

}  // namespace exact_topk::harness
