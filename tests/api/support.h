// SPDX-License-Identifier: Apache-2.0
//
// Calls of the C API as values, and rows whose f64 scores are known without
// computing them.
#pragma once

#include <exact_topk/exact_topk.h>

#include <cstdint>
#include <string>
#include <vector>

namespace exact_topk::tests {

// What a call gave.
struct Called {
  exact_topk_status status = EXACT_TOPK_OK;
  exact_topk_result result{};  // of a check
  std::string sentence;        // as said
};

exact_topk_scores scores_of(const std::vector<float>& scores);
exact_topk_list list_of(const std::vector<std::int32_t>& entries, int k,
                        int contract = EXACT_TOPK_SET);

Called check_list(const exact_topk_scores& scores, const exact_topk_list& list);
Called check_list(const std::vector<float>& scores,
                  const std::vector<std::int32_t>& entries, int k,
                  int contract = EXACT_TOPK_SET);
Called check_scores(const exact_topk_scores& scores,
                    const exact_topk_source& source, double bound = 1e-4);
Called check_list_f64(const exact_topk_source& source,
                      const exact_topk_list& list, double bound = 1e-4);

// A row of one head whose query is 1 in dim 0 and whose keys are 1 there, too,
// so that the score of a key is its scale.
class ScaleRow {
 public:
  // Position p lies on the table's page p / 64; without one on page p / 64.
  explicit ScaleRow(std::vector<float> scales,
                    std::vector<std::int32_t> table = {});
  ScaleRow(const ScaleRow&) = delete;
  ScaleRow& operator=(const ScaleRow&) = delete;

  exact_topk_source source() const;

 private:
  std::int64_t keys_;
  std::vector<std::int32_t> table_;
  std::vector<std::uint8_t> cache_;
  std::vector<float> query_;
  float weight_ = 1;
};

}  // namespace exact_topk::tests
