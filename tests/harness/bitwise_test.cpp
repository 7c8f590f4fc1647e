// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/bitwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

using ::testing::HasSubstr;

TEST(Query, FailsOnOneBit) {
  std::vector<uint16_t> reference(256, 0x3F80), got = reference;
  EXPECT_EQ(query_fault(got, reference), "");
  got[130] ^= 1;
  EXPECT_THAT(query_fault(got, reference), HasSubstr("head 1 dim 2 is 0x3f81"));
  // -0 is not +0.
  EXPECT_NE(
      query_fault(std::vector<uint16_t>{0x8000}, std::vector<uint16_t>{0}), "");
}

TEST(Key, FailsOnAByteAndOnTheScale) {
  oracle::CachedKey reference;
  reference.scale = 0.25f;
  oracle::CachedKey got = reference;
  EXPECT_EQ(key_fault(got, reference, 70), "");
  got.bytes[5] = 0x80;  // -0
  EXPECT_THAT(key_fault(got, reference, 70),
              HasSubstr("dim 5 of the key in slot 70 is 0x80"));
  got = reference;
  got.scale = 0.5f;
  EXPECT_THAT(key_fault(got, reference, 70), HasSubstr("scale in slot 70"));
}

TEST(Key, IsReadWhereTheLayoutPutsIt) {
  for (const auto layout :
       {oracle::PageLayout::kPlain, oracle::PageLayout::kPreshuffled16}) {
    std::vector<uint8_t> cache(size_t{2} * oracle::kPageBytes, 0xEE);
    const int64_t slot = 64 + 19;
    const float scale = 0x1p-7f;
    for (int dim = 0; dim < 128; ++dim)
      cache[oracle::key_byte(slot, dim, layout)] = uint8_t(dim);
    std::memcpy(&cache[oracle::scale_byte(slot)], &scale, sizeof scale);
    const oracle::CachedKey key = cached_key(cache, slot, layout);
    for (int dim = 0; dim < 128; ++dim) EXPECT_EQ(key.bytes[size_t(dim)], dim);
    EXPECT_EQ(key.scale, scale);
  }
}

}  // namespace
}  // namespace exact_topk::harness
