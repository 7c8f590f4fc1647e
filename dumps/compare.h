// SPDX-License-Identifier: Apache-2.0
//
// Comparing two digest trees (SPEC section 8): which leaves are equal bit for
// bit, and where execution first parted.
//
// Leaves pair by (rank in group, leaf), so a run of one rank that emulates a
// group compares with rank 0 of every real group. A leaf of a rank in group
// that the other tree's group of that case never had (group_ranks) is counted
// as not compared; any other leaf without a partner is one-sided, which is a
// difference.
//
// Execution order is: cases as tree A lists them (then those that only B has,
// as B lists them), launch, step, inputs before rows, row, scores before list,
// rank in group. The first differing leaf in that order names the stage at
// fault, since everything before it was equal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dumps/element.h"
#include "dumps/leaf.h"
#include "dumps/tree_reader.h"

namespace exact_topk::dumps {

// How the leaves of one kind fared.
struct KindCounts {
  std::int64_t equal = 0;         // same digest
  std::int64_t differing = 0;     // another digest
  std::int64_t only_in_a = 0;     // no partner, though B should have it
  std::int64_t only_in_b = 0;     // no partner, though A should have it
  std::int64_t not_compared = 0;  // of ranks in group that one tree lacks
};

// A pair that differs, or a leaf without a partner.
struct Difference {
  const TreeLeaf* a = nullptr;  // in tree A; null where only B has the leaf
  const TreeLeaf* b = nullptr;  // in tree B; null where only A has the leaf
  bool scores_equal = true;     // a list's row: its scores are equal or absent

  const TreeLeaf& leaf() const { return a != nullptr ? *a : *b; }
  bool one_sided() const { return a == nullptr || b == nullptr; }
};

struct Comparison {
  std::map<LeafKind, KindCounts> kinds;  // every kind has an entry
  std::vector<Difference> differences;   // all, in execution order

  bool equal() const { return differences.empty(); }
  // The first pair that differs; nothing where every difference is one-sided.
  std::optional<Difference> first_differing() const;
  std::optional<Difference> first_one_sided() const;
};

// std::runtime_error, one sentence, where the trees are not comparable: another
// schema, seed or geometry, another order of the leaves that both have, or
// another shape under one digest. The comparison points into the trees.
Comparison compare_trees(const Tree& a, const Tree& b);

// "inputs differ", "scores differ", "list differs, scores equal" ("list
// differs" where its scores are not equal); "only in A" and "only in B" for a
// one-sided leaf.
std::string difference_class(const Difference& difference);

// Where a differing pair's tensors part, if both trees hold them and dtype and
// shape agree. std::runtime_error where a tensor file is not the .npy file that
// its digest line describes.
std::optional<ElementDifference> first_element(const Difference& difference);

}  // namespace exact_topk::dumps
