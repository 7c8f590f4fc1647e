// SPDX-License-Identifier: Apache-2.0
#include "oracle/query_format.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace exact_topk::oracle {
namespace {

// The first element of head 0 and of head 1 of a query whose elements all have
// one code each a head.
template <typename Code>
std::vector<double> decoded(Code first, Code second, QueryFormat format,
                            std::vector<float> scales = {}) {
  std::vector<Code> codes(256, first);
  std::fill(codes.begin() + 128, codes.end(), second);
  EXPECT_EQ(query_bytes(format), sizeof(Code));
  const std::vector<double> values =
      decode_query(std::as_bytes(std::span(codes)), format, scales);
  EXPECT_EQ(values.size(), 256u);
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(values[i], values[i / 128 * 128]);
  return {values[0], values[128]};
}

// -1.5 and 2 in every format.
TEST(QueryFormat, EveryFormatDecodesExactly) {
  using Pair = std::vector<double>;
  EXPECT_EQ(decoded(-1.5f, 2.0f, QueryFormat::kF32), (Pair{-1.5, 2}));
  EXPECT_EQ(decoded<std::uint16_t>(0xBFC0, 0x4000, QueryFormat::kBf16),
            (Pair{-1.5, 2}));
  EXPECT_EQ(decoded<std::uint16_t>(0xBE00, 0x4000, QueryFormat::kF16),
            (Pair{-1.5, 2}));
  EXPECT_EQ(decoded<std::uint8_t>(0xBC, 0x40, QueryFormat::kE4m3fn),
            (Pair{-1.5, 2}));
  EXPECT_EQ(decoded<std::uint8_t>(0xBC, 0x40, QueryFormat::kE4m3fn, {2, 0.75f}),
            (Pair{-3, 1.5}));
}

}  // namespace
}  // namespace exact_topk::oracle
