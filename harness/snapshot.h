// SPDX-License-Identifier: Apache-2.0
//
// The live results of a launch, piece by piece: what must be the same bits when
// the launch is repeated, on every rank of the group, and between the arms
// (SPEC section 6, check 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/group.h"
#include "harness/launch_outputs.h"
#include "oracle/geometry.h"

namespace exact_topk::harness {

// One row's results of one tensor, or its key in the cache.
struct Piece {
  int row = 0;                   // of the step
  const char* name = "";         // "scores", "key" ...
  int element_bytes = 1;         // of an element
  std::vector<std::byte> bytes;  // packed
};

// Everything that the live rows of a launch left. `only_results`: scores and
// lists alone, which is what arms share.
std::vector<Piece> take_snapshot(const LaunchOutputs& outputs,
                                 const OutputLayout& layout,
                                 const cases::Step& step,
                                 oracle::PageLayout page_layout,
                                 bool only_results);

// The first difference of two pieces of the same name and row; empty where
// there is none. `a` and `b` say whose they are.
std::string difference(const Piece& piece_a, const Piece& piece_b,
                       const std::string& a, const std::string& b);

// The first piece in which a rank of the group differs from the first rank,
// the same sentence on every rank; empty where all agree. Collective.
std::string disagreement(const std::vector<Piece>& pieces, const Group& group);

}  // namespace exact_topk::harness
