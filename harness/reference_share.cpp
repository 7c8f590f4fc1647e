// SPDX-License-Identifier: Apache-2.0
#include "harness/reference_share.h"

#include <algorithm>
#include <cstring>

#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

// Copies `count` values out of packed bytes and moves on.
template <typename T>
void append(std::vector<T>& to, std::span<const std::byte>& from,
            size_t count) {
  const size_t old = to.size();
  to.resize(old + count);
  if (count == 0) return;
  std::memcpy(to.data() + old, from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
}

template <typename T>
void pack(std::vector<std::byte>& to, const std::vector<T>& values) {
  const auto raw = std::as_bytes(std::span(values));
  to.insert(to.end(), raw.begin(), raw.end());
}

}  // namespace

std::vector<double> ReferenceShare::join(std::span<const double> part,
                                         int outputs, int rows) const {
  const std::vector<std::vector<std::byte>> parts =
      group_.all_gather(std::as_bytes(part));
  std::vector<double> whole(size_t(outputs) * size_t(rows));
  size_t first = 0;  // output
  for (const std::vector<std::byte>& bytes : parts) {
    const size_t width = bytes.size() / sizeof(double) / size_t(rows);
    if (width == 0) continue;
    for (size_t row = 0; row < size_t(rows); ++row)
      std::memcpy(&whole[row * size_t(outputs) + first],
                  bytes.data() + row * width * sizeof(double),
                  width * sizeof(double));
    first += width;
  }
  return whole;
}

std::vector<oracle::RowScores> ReferenceShare::scores(
    std::span<const oracle::ScoreRow> rows, std::span<const uint8_t> cache,
    const oracle::Geometry& geometry) const {
  if (!together_) return oracle::scores(rows, cache, geometry);

  int64_t keys = 0;
  for (const oracle::ScoreRow& row : rows) keys = std::max(keys, row.keys);
  const auto [first_page, last_page] = group_.share(oracle::pages_of(keys));
  std::vector<std::byte> packed;
  for (const oracle::RowScores& row :
       oracle::scores(rows, cache, geometry,
                      {first_page * oracle::kPageTokens,
                       last_page * oracle::kPageTokens})) {
    pack(packed, std::vector<int64_t>{int64_t(row.value.size())});
    pack(packed, row.value);
    pack(packed, row.bound);
    pack(packed, row.zero);
    pack(packed, std::vector<double>{row.largest});
  }
  std::vector<oracle::RowScores> whole(rows.size());
  for (const std::vector<std::byte>& part : group_.all_gather(packed)) {
    std::span<const std::byte> rest(part);
    for (oracle::RowScores& row : whole) {
      std::vector<int64_t> count;
      append(count, rest, 1);
      const auto n = size_t(count[0]);
      append(row.value, rest, n);
      append(row.bound, rest, n);
      append(row.zero, rest, n);
      std::vector<double> largest;
      append(largest, rest, 1);
      row.largest = std::max(row.largest, largest[0]);
    }
  }
  return whole;
}

}  // namespace exact_topk::harness
