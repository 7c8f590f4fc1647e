// SPDX-License-Identifier: Apache-2.0
//
// The paths of a candidate's kernels that a run took, from what the candidate
// itself witnessed of each launch and selection (xtk_witness): that a suite
// passed says something of a path only if it went there. Candidates that do not
// export xtk_witness have none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/candidate.h"

namespace exact_topk::harness {

// A set of paths.
struct Paths {
  uint32_t taken = 0;  // bit i: path i of names()

  void add(const Paths& more) { taken |= more.taken; }
  bool operator==(const Paths&) const = default;
  // "groups of 1 row", ... of those taken, in one order.
  std::vector<std::string> names() const;
};

// By arm.
using ArmPaths = std::map<std::string, Paths>;
void add(ArmPaths& all, const ArmPaths& more);

// One row of a launch or of a selection.
struct WitnessedRow {
  xtk_witness_row witness;     // what the candidate says of it
  int64_t keys = 0;            // n
  std::optional<int> request;  // of a launch's live row
};

// The paths that its rows took.
Paths paths_of(std::span<const WitnessedRow> rows);

}  // namespace exact_topk::harness
