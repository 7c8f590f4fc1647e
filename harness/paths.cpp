// SPDX-License-Identifier: Apache-2.0
#include "harness/paths.h"

#include <algorithm>
#include <array>

#include "oracle/geometry.h"

namespace exact_topk::harness {
namespace {

enum Path {
  kGroupOf1,
  kGroupOf2,
  kGroupOf3,
  kGroupOf4,
  kChainOf8,
  kPatchesAcrossGroups,
  kThreeBatches,
  kSlices,
  k64Slices,
  kTwoChunks,
  kStopAt12,
  kStopAt24,
  kStopAt32,
  kTiesAcrossSlices,
  kPaths
};

constexpr std::array<const char*, kPaths> kNames = {
    "groups of 1 row",
    "groups of 2 rows",
    "groups of 3 rows",
    "groups of 4 rows",
    "a chain of 8 rows in two groups",
    "patches across groups",
    "3 batches in a run",
    "slices",
    "64 slices",
    "2 chunks in a slice",
    "a stop at 12 bits",
    "a stop at 24 bits",
    "a stop at 32 bits",
    "ties across slices"};

// Ties that a slice alone could not hold lie in several: slices are runs of
// whole pages, as even as can be.
bool ties_cross_slices(const WitnessedRow& row) {
  const xtk_witness_row& w = row.witness;
  if (w.slices < 2) return false;
  const int64_t pages =
      (row.keys + oracle::kPageTokens - 1) / oracle::kPageTokens;
  const int64_t longest =
      (pages + w.slices - 1) / w.slices * oracle::kPageTokens;
  return w.direct_ties > longest;
}

bool chain_in_two_groups(std::span<const WitnessedRow> rows) {
  return rows.size() == 8 &&
         std::ranges::all_of(rows, [&](const WitnessedRow& row) {
           const auto i = static_cast<int>(&row - rows.data());
           return row.witness.live == 1 && row.request == rows[0].request &&
                  row.witness.group_rows == 4 && row.witness.group == i / 4 * 4;
         });
}

}  // namespace

std::vector<std::string> Paths::names() const {
  std::vector<std::string> result;
  for (int i = 0; i < kPaths; ++i)
    if ((taken >> i & 1u) != 0) result.emplace_back(kNames[size_t(i)]);
  return result;
}

void add(ArmPaths& all, const ArmPaths& more) {
  for (const auto& [arm, paths] : more) all[arm].add(paths);
}

Paths paths_of(std::span<const WitnessedRow> rows) {
  Paths paths;
  const auto take = [&](Path path, bool taken) {
    paths.taken |= static_cast<uint32_t>(taken) << path;
  };
  for (const WitnessedRow& row : rows) {
    const xtk_witness_row& w = row.witness;
    if (w.live == 0) continue;
    for (int rows_of = 1; rows_of <= 4; ++rows_of)
      take(static_cast<Path>(kGroupOf1 + rows_of - 1), w.group_rows == rows_of);
    take(kPatchesAcrossGroups, w.patched_keys > w.group_rows);
    take(kThreeBatches, w.batches >= 3);
    take(kSlices, w.slices >= 2);
    take(k64Slices, w.slices >= 64);
    take(kTwoChunks, w.chunks >= 2);
    take(kStopAt12, w.stop_bits == 12);
    take(kStopAt24, w.stop_bits == 24);
    take(kStopAt32, w.stop_bits == 32);
    take(kTiesAcrossSlices, ties_cross_slices(row));
  }
  take(kChainOf8, chain_in_two_groups(rows));
  return paths;
}

}  // namespace exact_topk::harness
