// SPDX-License-Identifier: Apache-2.0
#include "dumps/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "dumps/mapped_file.h"

namespace exact_topk::dumps {
namespace {

// The tree's place and group size of every case it ran.
std::map<std::string_view, const LeafInfo*> cases_of(const Tree& tree) {
  std::map<std::string_view, const LeafInfo*> cases;
  for (const TreeLeaf& leaf : tree.leaves)
    cases.emplace(leaf.name.case_name, &leaf.info);
  return cases;
}

// Whether a leaf without a partner is a difference: its rank in group also ran
// in the other tree, or nothing of the case did.
bool is_missing(
    const TreeLeaf& leaf,
    const std::map<std::string_view, const LeafInfo*>& other_cases) {
  const auto found = other_cases.find(leaf.name.case_name);
  return found == other_cases.end() ||
         leaf.info.rank_in_group < found->second->group_ranks;
}

// Every leaf of both trees, by rank in group and name.
using Pairs = std::map<std::pair<int, std::string_view>, Difference>;

// Whether the scores that the list was selected from are equal. A run of
// selection alone has none: its scores are inputs.
bool has_equal_scores(const Pairs& pairs, const TreeLeaf& list) {
  const std::string scores =
      list.leaf.substr(0, list.leaf.rfind('/')) + "/scores.npy";
  const auto found = pairs.find({list.info.rank_in_group, scores});
  return found == pairs.end() ||
         (!found->second.one_sided() &&
          found->second.a->digest == found->second.b->digest);
}

void check_comparable(const Tree& a, const Tree& b) {
  for (const char* key : {"schema", "seed", "geometry"}) {
    const auto& in_a = a.run.at(key);
    const auto& in_b = b.run.at(key);
    if (in_a != in_b) {
      throw std::runtime_error(fmt::format(
          "{} and {} are not comparable: their {} is {} and {}",
          a.path.string(), b.path.string(), key, in_a.dump(), in_b.dump()));
    }
  }
}

// What a leaf's digest covers and its line repeats must agree where the digests
// do.
void check_described_alike(const Tree& a, const Tree& b, const Pairs& pairs) {
  for (const auto& [key, pair] : pairs) {
    if (pair.one_sided() || pair.a->digest != pair.b->digest) continue;
    if (pair.a->dtype != pair.b->dtype || pair.a->shape != pair.b->shape)
      throw std::runtime_error(fmt::format(
          "{} and {} are not comparable: they give {} one digest and two "
          "shapes",
          a.path.string(), b.path.string(), pair.a->leaf));
  }
}

// The leaves of each rank in group and case that both trees have, in the order
// of the lines of one of them.
using Orders =
    std::map<std::pair<int, std::string_view>, std::vector<std::string_view>>;

Orders orders_of(const Tree& tree, const Pairs& pairs) {
  Orders orders;
  for (const TreeLeaf& leaf : tree.leaves)
    if (!pairs.at({leaf.info.rank_in_group, leaf.leaf}).one_sided())
      orders[{leaf.info.rank_in_group, leaf.name.case_name}].push_back(
          leaf.leaf);
  return orders;
}

// Both must have executed what they share in one order: the first difference
// means something only then.
void check_same_order(const Tree& a, const Tree& b, const Pairs& pairs) {
  const Orders in_b = orders_of(b, pairs);
  for (const auto& [key, leaves] : orders_of(a, pairs)) {
    const auto& other = in_b.at(key);
    const auto [here, there] =
        std::mismatch(leaves.begin(), leaves.end(), other.begin());
    if (here != leaves.end())
      throw std::runtime_error(fmt::format(
          "{} and {} are not comparable: their orders of execution part at {} "
          "and {}",
          a.path.string(), b.path.string(), *here, *there));
  }
}

// The tensor's bytes after its header.
std::span<const std::byte> tensor_data(const MappedFile& file,
                                       const TreeLeaf& leaf) {
  const std::string header = npy_header(leaf.dtype, leaf.shape);
  if (!file.text().starts_with(header) ||
      file.bytes().size() - header.size() !=
          tensor_bytes(leaf.dtype, leaf.shape)) {
    throw std::runtime_error(fmt::format(
        "{} is not the {} tensor that its line in the .jsonl file describes",
        leaf.tensor.string(), dtype_name(leaf.dtype)));
  }
  return file.bytes().subspan(header.size());
}

}  // namespace

std::optional<Difference> Comparison::first_differing() const {
  const auto found = std::find_if_not(differences.begin(), differences.end(),
                                      [](auto& d) { return d.one_sided(); });
  return found == differences.end() ? std::nullopt : std::optional(*found);
}

std::optional<Difference> Comparison::first_one_sided() const {
  const auto found = std::find_if(differences.begin(), differences.end(),
                                  [](auto& d) { return d.one_sided(); });
  return found == differences.end() ? std::nullopt : std::optional(*found);
}

Comparison compare_trees(const Tree& a, const Tree& b) {
  check_comparable(a, b);
  const auto cases_a = cases_of(a);
  const auto cases_b = cases_of(b);
  Pairs pairs;
  for (const TreeLeaf& leaf : a.leaves)
    pairs[{leaf.info.rank_in_group, leaf.leaf}].a = &leaf;
  for (const TreeLeaf& leaf : b.leaves)
    pairs[{leaf.info.rank_in_group, leaf.leaf}].b = &leaf;
  check_described_alike(a, b, pairs);
  check_same_order(a, b, pairs);

  Comparison comparison;
  for (const LeafKind kind : kLeafKinds) comparison.kinds[kind] = {};
  for (auto& [key, pair] : pairs) {
    KindCounts& counts = comparison.kinds[pair.leaf().name.kind];
    bool differs = true;
    if (!pair.one_sided()) {
      differs = pair.a->digest != pair.b->digest;
      ++(differs ? counts.differing : counts.equal);
    } else if (is_missing(pair.leaf(), pair.a != nullptr ? cases_b : cases_a)) {
      ++(pair.a != nullptr ? counts.only_in_a : counts.only_in_b);
    } else {
      ++counts.not_compared;
      continue;
    }
    if (!differs) continue;
    if (pair.leaf().name.kind == LeafKind::list)
      pair.scores_equal = has_equal_scores(pairs, pair.leaf());
    comparison.differences.push_back(pair);
  }

  const auto place = [&](const Difference& difference) {
    const TreeLeaf& leaf = difference.leaf();
    const auto in_a = cases_a.find(leaf.name.case_name);
    const bool only_b = in_a == cases_a.end();
    const int case_index =
        only_b ? leaf.info.case_index : in_a->second->case_index;
    // Inputs have one writer a group, so their order is that of its lines; rows
    // are ordered by what they are.
    const std::int64_t sequence =
        leaf.name.kind == LeafKind::input ? leaf.sequence : 0;
    return std::tuple(only_b, case_index, leaf.name.launch, leaf.name.step,
                      leaf.name.row, leaf.name.kind, sequence,
                      leaf.info.rank_in_group, std::string_view(leaf.leaf));
  };
  std::sort(comparison.differences.begin(), comparison.differences.end(),
            [&](const Difference& x, const Difference& y) {
              return place(x) < place(y);
            });
  return comparison;
}

std::string difference_class(const Difference& difference) {
  if (difference.b == nullptr) return "only in A";
  if (difference.a == nullptr) return "only in B";
  switch (difference.leaf().name.kind) {
    case LeafKind::input:
      return "inputs differ";
    case LeafKind::scores:
      return "scores differ";
    case LeafKind::list:
      return difference.scores_equal ? "list differs, scores equal"
                                     : "list differs";
  }
  throw std::logic_error("no such leaf kind");
}

std::optional<ElementDifference> first_element(const Difference& difference) {
  if (difference.one_sided()) return {};
  const TreeLeaf& a = *difference.a;
  const TreeLeaf& b = *difference.b;
  if (a.tensor.empty() || b.tensor.empty() || a.dtype != b.dtype ||
      a.shape != b.shape)
    return {};
  const MappedFile file_a(a.tensor);
  const MappedFile file_b(b.tensor);
  return first_difference(a.dtype, a.shape, tensor_data(file_a, a),
                          tensor_data(file_b, b));
}

}  // namespace exact_topk::dumps
