// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a score tile (mma.h) works on, the same on every platform.

#include <stdint.h>

namespace exact_topk::hip {

/// Keys and outputs a tile.
inline constexpr int kTile = 16;
/// Dims of an index key.
inline constexpr int kKeyDims = 128;
/// Most queries of a score tile.
inline constexpr int kTileQueries = 4;
/// Most input rows of a front tile.
inline constexpr int kTileRows = 8;

/// What a lane gets: one value a row.
template <int Rows>
struct RowValues {
  float value[Rows];  ///< by row; those past the rows asked for are 0
};

/// How a page keeps its key bytes.
enum class KeyLayout {
  plain,          ///< token after token, 128 bytes each
  preshuffled16,  ///< (t, d) at (t/16)*2048 + (d/16)*256 + (t%16)*16 + d%16
};

/// 16 consecutive keys of a page.
struct KeyTile {
  const uint8_t* page;  ///< the page's first key byte
  int first;            ///< the first key's token in the page, a multiple of 16
  KeyLayout layout;     ///< where a key's bytes are
  bool fnuz;            ///< e4m3fnuz, else e4m3fn
};

/// A query as scored.
struct ScoreQuery {
  const uint16_t* query;  ///< bf16 [heads][128]
  const float* weights;   ///< f32 [heads]
};

}  // namespace exact_topk::hip
