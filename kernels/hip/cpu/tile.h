// SPDX-License-Identifier: Apache-2.0
#pragma once

// The matrix tiles of mma.h on the CPU: each lane brings a description of the
// tile, the last to arrive computes it in vectors, and every lane takes its
// results away in its own description.

#include <cstddef>
#include <cstdint>

#include "kernels/hip/cpu/collectives.h"
#include "kernels/hip/tile_operands.h"

namespace exact_topk::hip::cpu {

struct ScoreTile {
  KeyTile keys;               ///< which keys
  const ScoreQuery* queries;  ///< [rows]
  int rows;                   ///< 1..4
  int heads;                  ///< of every query
  float* result;  ///< [rows], this lane's: the scores of key lane % 16
};

template <class Weight, class Input>
struct FrontTile {
  const Weight* weights;  ///< [16][stride]
  int outputs;            ///< weight rows that exist, 1..16
  int weight_stride;      ///< elements from one weight row to the next
  const Input* x;         ///< [rows][stride]
  int rows;               ///< 1..8
  int x_stride;           ///< elements from one input row to the next
  int inputs;             ///< length of a dot product
  float* result;  ///< [8], this lane's: output lane % 16 of every row, 0 past
                  ///< the rows and outputs
};

void compute_score_tile(const Meeting& meeting);
template <class Weight, class Input>
void compute_front_tile(const Meeting& meeting);

inline constexpr Collective kScoreTile{"score tile", compute_score_tile,
                                       nullptr, true};
template <class Weight, class Input>
inline constexpr Collective kFrontTile{
    "front tile", compute_front_tile<Weight, Input>, nullptr, true};

inline void score_tile(ScoreTile tile, Site site) {
  if (sanitizer::kThread && current->lane == 0) {
    constexpr std::size_t kTileBytes = 16 * 128;  // in both layouts
    sanitizer::announce_read(tile.keys.page + tile.keys.first * 128,
                             kTileBytes);
    const auto heads = static_cast<std::size_t>(tile.heads);
    for (int r = 0; r < tile.rows; ++r) {
      sanitizer::announce_read(tile.queries[r].query,
                               heads * 128 * sizeof(std::uint16_t));
      sanitizer::announce_read(tile.queries[r].weights, heads * sizeof(float));
    }
  }
  meet(kScoreTile, &tile, kWholeWave, site);
}

template <class Weight, class Input>
void front_tile(FrontTile<Weight, Input> tile, Site site) {
  if (sanitizer::kThread && current->lane == 0) {
    const auto inputs = static_cast<std::size_t>(tile.inputs);
    for (int o = 0; o < tile.outputs; ++o)
      sanitizer::announce_read(
          tile.weights + static_cast<std::ptrdiff_t>(o) * tile.weight_stride,
          inputs * sizeof(Weight));
    for (int r = 0; r < tile.rows; ++r)
      sanitizer::announce_read(
          tile.x + static_cast<std::ptrdiff_t>(r) * tile.x_stride,
          inputs * sizeof(Input));
  }
  meet(kFrontTile<Weight, Input>, &tile, kWholeWave, site);
}

}  // namespace exact_topk::hip::cpu
