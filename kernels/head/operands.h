// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the one kernel of the head arm works on, and the memory through which
// its blocks hand data to one another.
//
// Hand-offs are tagged pairs (kernels/hip/atomics.h): 64-bit words of payload
// and launch tag. The areas are cleared once, when the candidate opens, and
// never again; a launch writes each word at most once, so a word either carries
// the launch's tag and its payload or is older. Nothing is shared between
// launches but the tag count.

#include <cstdint>

#include "kernels/layout.h"
#include "kernels/operands.h"
#include "kernels/stages/select_row.h"

namespace exact_topk::kernels::head {

inline constexpr int kThreads =
    384;  // of a block: three warpgroups with 168 registers a thread on NVIDIA
inline constexpr int kGathers =
    6;  // of a search: two of each digit of 12, 12 and 8 bits
inline constexpr int kGatherWords = 32;  // pairs of two 16-bit counts: 64 bins
inline constexpr int kKeyWords =
    kHeadDim / 4;  // pairs of a key's bytes; one more holds its scale

// Tagged pairs, by area.
struct HandOff {
  uint64_t* x;          // [R][hidden / 2], two bf16 a pair
  uint64_t* q_down;     // [R][q_lora], f32
  uint64_t* q_lora;     // [R][q_lora / 2], two bf16 a pair
  uint64_t* mailbox;    // [R][H * 128], f32
  uint64_t* raw_key;    // [R][128], f32
  uint64_t* w;          // [R][H], f32
  uint64_t* query;      // [R][H * 64], two bf16 a pair
  uint64_t* key;        // [R][33], four key bytes a pair, then the scale
  uint64_t* run_done;   // [R][kMaxRuns], by the group's first row; stored with
                        // release order
  uint64_t* gather;     // [kGathers][R][kMaxSlices][kGatherWords]
  uint64_t* extreme;    // [R][kMaxSlices][2], the largest key that shares T's
                        // first 12 bits and the largest complement of one
  uint64_t* candidate;  // [R][kRoom], the bits of a candidate's key that the
                        // prefix leaves open
};

// Which stages a launch runs.
enum Part : unsigned {
  kFrontPart = 1,     // inputs to mailbox, raw keys and head weights
  kKeyQueryPart = 2,  // index keys and queries
  kScorePart = 4,     // scores
  kSelectPart = 8     // lists
};

// The rows of a selection and where their lists go.
struct Selection {
  int k;                     // entries of a full row
  const float* scores;       // rows of scores
  const int64_t* row_start;  // [R], each row's first score; nullptr: row r
                             // starts at r * score_stride
  int64_t score_stride;      // entries from one row to the next
  const int32_t* indptr;     // [R], each row's first entry in the list
  int32_t* list;             // out
  int32_t* own_candidates;   // scratch, [R][kRoom]: entries; each block reads
                             // back only what it wrote

  __device__ const float* row_scores(int row) const {
    return scores +
           (row_start == nullptr ? row * score_stride : row_start[row]);
  }
};

struct Operands {
  unsigned parts;           // Part bits
  uint32_t tag;             // of this launch, never 0
  FrontOperands front;      // stages 1 to 4; front.rows are the launch's rows
  ScoreOperands score;      // stage 5
  Selection select;         // stage 6
  const int32_t* requests;  // [R], -1 for a row without keys
  int most_slices;          // of a row, at most
  int batch_pages;  // pages of a batch: kBatchPages, fewer where many heads
                    // leave less LDS
  HandOff pairs;    // hand-offs
  uint32_t* run_patched;  // [R][kMaxRuns], keys that each run took from pairs;
                          // by the group's first row
  SelectPath* paths;      // out, [R]

  __device__ layout::RowsView view() const {
    return {front.rows.rows,       requests,
            front.rows.positions,  front.slots,
            front.rows.page_table, front.rows.table_width};
  }
};

}  // namespace exact_topk::kernels::head
