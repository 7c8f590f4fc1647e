// SPDX-License-Identifier: Apache-2.0
#include "tests/api/support.h"

#include <algorithm>
#include <cstring>

namespace exact_topk::tests {
namespace {

template <typename Check>
Called called(Check check) {
  Called made;
  made.result.struct_size = sizeof made.result;
  char sentence[EXACT_TOPK_SENTENCE_BYTES] = "not said";
  made.status = check(&made.result, sentence, sizeof sentence);
  made.sentence = sentence;
  return made;
}

}  // namespace

exact_topk_scores scores_of(const std::vector<float>& scores) {
  exact_topk_scores made{};
  made.struct_size = sizeof made;
  made.dtype = EXACT_TOPK_F32;
  made.data = scores.data();
  made.n = static_cast<std::int64_t>(scores.size());
  return made;
}

exact_topk_list list_of(const std::vector<std::int32_t>& entries, int k,
                        int contract) {
  exact_topk_list made{};
  made.struct_size = sizeof made;
  made.dtype = EXACT_TOPK_I32;
  made.entries = entries.data();
  made.count = static_cast<std::int64_t>(entries.size());
  made.k = k;
  made.contract = contract;
  return made;
}

Called check_list(const exact_topk_scores& scores,
                  const exact_topk_list& list) {
  return called([&](auto... rest) {
    return exact_topk_check_list(&scores, &list, rest...);
  });
}

Called check_list(const std::vector<float>& scores,
                  const std::vector<std::int32_t>& entries, int k,
                  int contract) {
  return check_list(scores_of(scores), list_of(entries, k, contract));
}

Called check_scores(const exact_topk_scores& scores,
                    const exact_topk_source& source, double bound) {
  return called([&](auto... rest) {
    return exact_topk_check_scores(&scores, &source, bound, rest...);
  });
}

Called check_list_f64(const exact_topk_source& source,
                      const exact_topk_list& list, double bound) {
  return called([&](auto... rest) {
    return exact_topk_check_list_f64(&source, &list, bound, rest...);
  });
}

ScaleRow::ScaleRow(std::vector<float> scales, std::vector<std::int32_t> table)
    : keys_(static_cast<std::int64_t>(scales.size())),
      table_(std::move(table)),
      query_(EXACT_TOPK_HEAD_DIM, 0.0f) {
  query_[0] = 1;
  const auto page_of = [&](std::size_t position) {
    return table_.empty() ? position / EXACT_TOPK_PAGE_TOKENS
                          : static_cast<std::size_t>(
                                table_[position / EXACT_TOPK_PAGE_TOKENS]);
  };
  std::size_t pages = 1;
  for (std::size_t p = 0; p < scales.size(); ++p)
    pages = std::max(pages, page_of(p) + 1);
  cache_.assign(pages * EXACT_TOPK_PAGE_BYTES, 0);
  for (std::size_t p = 0; p < scales.size(); ++p) {
    const std::size_t page = page_of(p) * EXACT_TOPK_PAGE_BYTES;
    const std::size_t token = p % EXACT_TOPK_PAGE_TOKENS;
    cache_[page + token * EXACT_TOPK_HEAD_DIM] = 0x38;  // 1 in e4m3fn
    std::memcpy(&cache_[page + EXACT_TOPK_PAGE_TOKENS * EXACT_TOPK_HEAD_DIM +
                        token * sizeof(float)],
                &scales[p], sizeof(float));
  }
}

exact_topk_source ScaleRow::source() const {
  exact_topk_source made{};
  made.struct_size = sizeof made;
  made.query_dtype = EXACT_TOPK_F32;
  made.query = query_.data();
  made.weights = &weight_;
  made.cache = cache_.data();
  made.cache_pages =
      static_cast<std::int64_t>(cache_.size()) / EXACT_TOPK_PAGE_BYTES;
  made.page_table = table_.empty() ? nullptr : table_.data();
  made.pages = static_cast<std::int64_t>(table_.size());
  made.keys = keys_;
  made.heads = 1;
  return made;
}

}  // namespace exact_topk::tests
