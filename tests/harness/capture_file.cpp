// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/capture_file.h"

namespace exact_topk::harness {

CaptureFile& selection(CaptureFile& file) {
  std::vector<float> scores;
  for (int r = 0; r < 2; ++r)
    for (int j = 0; j < 110; ++j) scores.push_back(float(j));
  return file.set("scores", "F32", {2, 110}, scores)
      .set<int32_t>("lengths", "I32", {2}, {100, 3})
      .set<int32_t>("topk", "I32", {2, 4}, {96, 97, 98, 99, 0, 1, 2, -1});
}

CaptureFile& query_group(CaptureFile& file) {
  constexpr int kKeys = 130, kPages = 6, kPageBytes = 8448;
  const std::vector<int32_t> table{5, 2, 3};
  std::vector<uint8_t> cache(size_t{kPages} * kPageBytes, 0x7F);
  std::vector<float> scores;
  for (int j = 0; j < kKeys; ++j) {
    uint8_t* page = cache.data() + size_t(table[size_t(j / 64)]) * kPageBytes;
    uint8_t* key = page + j % 64 * 128;
    std::memset(key, 0, 128);
    key[0] = 0x38;
    const float scale = 1.0f / float(1 << j % 3);
    std::memcpy(page + 64 * 128 + j % 64 * 4, &scale, sizeof scale);
    scores.push_back(scale);
  }
  std::vector<uint16_t> query(2 * 128, 0);
  query[0] = query[128 + 1] = 0x3F80;
  return file.set("scores", "F32", {1, kKeys}, scores)
      .set<int64_t>("lengths", "I64", {1}, {kKeys})
      .set<int64_t>("topk", "I64", {1, 4},
                    {5 * 64, 5 * 64 + 3, 5 * 64 + 6, 5 * 64 + 9})
      .set("page_table", "I32", {1, 3}, table)
      .set("index_q", "BF16", {1, 2, 128}, query)
      .set<float>("head_weights", "F32", {1, 2}, {1.0f, 0.5f})
      .set("index_cache", "U8", {kPages, kPageBytes}, cache)
      .meta("entries", "slot")
      .meta("contract", "base");
}

}  // namespace exact_topk::harness
