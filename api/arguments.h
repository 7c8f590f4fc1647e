// SPDX-License-Identifier: Apache-2.0
//
// The structures of the C API, checked and turned into what the oracle takes.
// Every argument that is wrong is one std::invalid_argument sentence that names
// the field, its value and what it takes; nothing is read before its size is
// known to be right.
#pragma once

#include <exact_topk/exact_topk.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "oracle/contract.h"
#include "oracle/geometry.h"
#include "oracle/score_format.h"
#include "oracle/scores.h"

namespace exact_topk::api {

// Throws the sentence unless `holds`.
void require(bool holds, const std::string& sentence);
// The structure or output `name` is there.
void require_pointer(const void* pointer, const char* name);
void require_size(std::uint32_t given, std::size_t known, const char* name);
// The structure `name` is there and of a size that this library knows: its own,
// as there is no older version.
template <typename Struct>
void require_struct(const Struct* structure, const char* name) {
  require_pointer(structure, name);
  require_size(structure->struct_size, sizeof(Struct), name);
}
void require_bound(double bound);
void require_k(std::int32_t k, const char* name);

struct Row {
  std::vector<float> scores;     // [n]
  oracle::ScoreFormat format{};  // that they were kept in
};
Row row_of(const exact_topk_scores* scores);

struct List {
  std::vector<std::int64_t> entries;    // as the kernel wrote them
  std::vector<std::int32_t> positions;  // the same as positions of the row
  int k = 0;                            // entries of a full list
  oracle::Contract contract{};          // what was promised
  oracle::ValueRules rules;             // how values rank
};
List list_of(const exact_topk_list* list, std::int64_t keys);

// The f64 scores of a row.
oracle::RowScores reference_of(const exact_topk_source* source);

}  // namespace exact_topk::api
