// SPDX-License-Identifier: Apache-2.0
#include "harness/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "harness/checks/bitwise.h"

namespace exact_topk::harness {
namespace {

uint64_t digest(const std::vector<std::byte>& bytes) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// An element's bits, in hex.
std::string bits(const Piece& piece, size_t element) {
  uint32_t value = 0;
  std::memcpy(&value,
              piece.bytes.data() + element * size_t(piece.element_bytes),
              size_t(piece.element_bytes));
  return fmt::format("{:#0{}x}", value, 2 + 2 * piece.element_bytes);
}

}  // namespace

std::vector<Piece> take_snapshot(const LaunchOutputs& outputs,
                                 const OutputLayout& layout,
                                 const cases::Step& step,
                                 oracle::PageLayout page_layout,
                                 bool only_results) {
  std::vector<Piece> pieces;
  for (size_t r = 0; r < step.rows.size(); ++r) {
    if (!step.rows[r].live) continue;
    const int row = int(r);
    for (const xtk_tensor tensor : kOutputs) {
      if (!outputs.has(tensor)) continue;
      if (only_results && tensor != XTK_SCORES && tensor != XTK_LIST) continue;
      const auto bytes = outputs.row<std::byte>(tensor, step, row);
      pieces.push_back({row,
                        output_name(tensor),
                        layout.element_bytes(tensor),
                        {bytes.begin(), bytes.end()}});
    }
    if (only_results) continue;
    const oracle::CachedKey key =
        cached_key(outputs.cache(), step.rows[r].slot, page_layout);
    Piece piece{row, "key", 1, {}};
    piece.bytes.resize(key.bytes.size() + sizeof key.scale);
    std::memcpy(piece.bytes.data(), key.bytes.data(), key.bytes.size());
    std::memcpy(piece.bytes.data() + key.bytes.size(), &key.scale,
                sizeof key.scale);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::string difference(const Piece& piece_a, const Piece& piece_b,
                       const std::string& a, const std::string& b) {
  if (piece_a.bytes == piece_b.bytes) return "";
  const size_t size = std::min(piece_a.bytes.size(), piece_b.bytes.size());
  const auto differs =
      std::mismatch(piece_a.bytes.begin(), piece_a.bytes.begin() + long(size),
                    piece_b.bytes.begin())
          .first -
      piece_a.bytes.begin();
  const size_t element = size_t(differs) / size_t(piece_a.element_bytes);
  return fmt::format("element {} of {} is {} in {} and {} in {}", element,
                     piece_a.name, bits(piece_a, element), a,
                     bits(piece_b, element), b);
}

std::string disagreement(const std::vector<Piece>& pieces, const Group& group) {
  std::vector<uint64_t> own(pieces.size());
  std::transform(pieces.begin(), pieces.end(), own.begin(),
                 [](const Piece& piece) { return digest(piece.bytes); });
  const auto all = group.all_gather(std::as_bytes(std::span(own)));
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (std::memcmp(&all[rank][i * sizeof(uint64_t)],
                      &all[0][i * sizeof(uint64_t)], sizeof(uint64_t)) != 0)
        return fmt::format(
            "row {}: {} of rank {} of the group differs from "
            "rank 0's",
            pieces[i].row, pieces[i].name, rank);
  return "";
}

}  // namespace exact_topk::harness
