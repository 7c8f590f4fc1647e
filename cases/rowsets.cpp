// SPDX-License-Identifier: Apache-2.0
#include "cases/rowsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "oracle/geometry.h"

namespace exact_topk::cases {
namespace {

// floor(W/4) requests of 4 verify rows P-3..P; for W < 4 one live row at P; the
// rest pad.
std::vector<PlacedRow> serving(int width, int64_t position) {
  std::vector<PlacedRow> rows(static_cast<size_t>(width));
  if (width < 4) {
    rows[0] = {0, position};
    return rows;
  }
  for (int r = 0; r < width / 4 * 4; ++r)
    rows[static_cast<size_t>(r)] = {r / 4, position - 3 + r % 4};
  return rows;
}

// One request a row; rows from the third on share first pages with row 0.
std::vector<PlacedRow> mixed(int width, int64_t position) {
  const std::array<int64_t, 8> places = {
      position, 1022, 3 * position / 4, 2047, position / 2, 2048, 2046, 0};
  const int64_t quarter = (position / oracle::kPageTokens + 1) / 4;
  std::vector<PlacedRow> rows;
  for (int r = 0; r < width; ++r) {
    const int64_t place = std::min(places[static_cast<size_t>(r)], position);
    rows.push_back(
        {r, place,
         r >= 2 ? std::min(quarter, place / oracle::kPageTokens) : 0});
  }
  return rows;
}

// One request's rows P-W+1..P.
std::vector<PlacedRow> chain(int width, int64_t position) {
  std::vector<PlacedRow> rows;
  for (int r = 0; r < width; ++r) rows.push_back({0, position - width + 1 + r});
  return rows;
}

// Pad rows among live ones: at W = 8 inside one request's chain, else among
// requests of a row each at P, P/2, 1022, P, ...
std::vector<PlacedRow> padded(int width, int64_t position) {
  std::vector<PlacedRow> rows(static_cast<size_t>(width));
  std::vector<size_t> live;
  for (int r = 0; r < width; ++r) {
    const bool pad = r == width / 2 || (width >= 4 && r == width - 1) ||
                     (width == 8 && r == 0);
    if (!pad) live.push_back(static_cast<size_t>(r));
  }
  const std::array<int64_t, 3> places = {position, position / 2,
                                         std::min<int64_t>(1022, position)};
  for (size_t i = 0; i < live.size(); ++i) {
    if (width == 8)
      rows[live[i]] = {0, position - static_cast<int64_t>(live.size() - 1 - i)};
    else
      rows[live[i]] = {static_cast<int>(i), places[i % places.size()]};
  }
  return rows;
}

constexpr RowSet kRowSets[] = {
    {"serving",
     "requests of 4 verify rows P-3..P, or one row at P; the rest pad",
     serving},
    {"mixed",
     "one request a row at P, 1022, 3P/4, 2047, P/2, 2048, 2046, 0, with "
     "shared first pages",
     mixed},
    {"chain", "one request's rows P-W+1..P", chain},
    {"padded", "pad rows between live ones", padded},
};

}  // namespace

std::span<const RowSet> row_sets() { return kRowSets; }

const RowSet& row_set(std::string_view name) {
  for (const RowSet& entry : kRowSets)
    if (entry.name == name) return entry;
  throw std::invalid_argument(fmt::format("no row set is named '{}'", name));
}

}  // namespace exact_topk::cases
