// SPDX-License-Identifier: Apache-2.0
//
// expand.h - from case options to cases.
//
// Every combination of the lists is a case, in the order of the name (kind
// outermost, pos innermost); a combination whose name was there before is
// dropped, as it would have the same inputs. Defaults: kind index, pos 8447
// (selecting alone: the family's own length), rows 2 and 4, all caches, all row
// sets, all families.
#pragma once

#include <vector>

#include "cases/case.h"
#include "cases/options.h"

namespace exact_topk::cases {

// The cases that the options select. `default_tp` is used where --tp was not
// given. Throws std::invalid_argument, one sentence naming the option, where
// options contradict each other, a geometry file is bad or a row would see more
// than 2^20 + 64 keys.
std::vector<Case> expand(const CaseOptions& options, int default_tp);

// Appends the cases whose name is not there yet. Throws std::invalid_argument
// where two cases share a name and differ, which takes two geometry files of
// one stem.
void append_new(std::vector<Case>& cases, const std::vector<Case>& more);

}  // namespace exact_topk::cases
