// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kernels of a launch work on: device addresses and sizes, passed to
// kernels by value. Shapes are those of candidate.h; R is `rows`, the rows of
// this launch.

#include <cstdint>

#include "kernels/geometry.h"
#include "kernels/hip/hip.h"
#include "kernels/stages/pages.h"

namespace exact_topk::kernels {

enum class Kind : int32_t {
  kIndex,
  kDense,
  kEmbed
};  // how hidden states reach the indexer

// Where the rows of a launch lie in the cache.
struct RowTables {
  int rows;  // R
  const int32_t*
      positions;  // [R], each row's last key; -1 for a row without keys
  const int32_t* page_table;  // [R][table_width]; nullptr in a selection whose
                              // entries are positions
  int table_width;            // M

  // n of a row: the keys that it sees, 0 for a pad row.
  __device__ int keys(int row) const {
    return positions[row] < 0 ? 0 : positions[row] + 1;
  }
  __device__ const int32_t* table(int row) const {
    return page_table == nullptr ? nullptr
                                 : page_table + int64_t{row} * table_width;
  }
};

// Weights of a layer.
struct Weights {
  const uint16_t* embedding;  // bf16 [vocabulary][hidden]
  const float* input_gamma;   // [hidden]
  const uint16_t* q_a;        // bf16 [q_lora][hidden]
  const float* q_gamma;       // [q_lora]
  const uint16_t* wq_b;       // bf16 [H*128][q_lora]
  const uint16_t* wk;         // bf16 [128][hidden]
  const float* k_gamma;       // [128]
  const float* k_beta;        // [128]
  const float* weights_proj;  // [H][hidden]
  const float* rope_cos;      // [rope_positions][32]
  const float* rope_sin;      // [rope_positions][32]
};

// Stages 1 to 4: hidden states to index queries and keys.
struct FrontOperands {
  Geometry geometry;      // of the model
  Kind kind;              // where hidden states come from
  int partial_count;      // T for kind index, 1 for dense, 0 for embed
  RowTables rows;         // which rows are live, and where they are
  Weights weights;        // of the layer
  const float* residual;  // [R][hidden]
  const float* partials;  // [T][R][hidden]
  const int32_t* tokens;  // [R]
  const int32_t* slots;   // [R], where each row's own key goes
  uint16_t* x;            // out, bf16 [R][hidden]
  float* q_down;          // scratch, [R][q_lora]: q_a x before its norm
  uint16_t* q_lora;       // out, bf16 [R][q_lora]
  float* mailbox;         // out, [R][H][128]
  float* raw_key;         // out, [R][128]
  float* w;               // out, [R][H]
  uint16_t* index_query;  // out, bf16 [R][H][128]
  uint8_t* cache;         // [pages][8448]; the rows' own slots are written
};

// Stage 5: scores.
struct ScoreOperands {
  Geometry geometry;      // of the model
  RowTables rows;         // what each row sees
  const uint16_t* query;  // bf16 [R][H][128]
  const float* weights;   // [R][H]
  const uint8_t* cache;   // [pages][8448]
  float* scores;          // out, [R][score_stride]
  int64_t score_stride;   // entries from one row to the next
};

}  // namespace exact_topk::kernels
