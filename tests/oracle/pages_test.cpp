// SPDX-License-Identifier: Apache-2.0
#include "oracle/pages.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace exact_topk::oracle {
namespace {

TEST(Pages, BytesByTheirDefinition) {
  EXPECT_EQ(key_byte(0, 0, PageLayout::kPlain), 0u);
  EXPECT_EQ(key_byte(2 * 64 + 5, 7, PageLayout::kPlain),
            2u * 8448 + 5 * 128 + 7);
  // FACTS section 2: (off/16)*2048 + (d/16)*256 + (off%16)*16 + d%16.
  EXPECT_EQ(key_byte(2 * 64 + 37, 50, PageLayout::kPreshuffled16),
            2u * 8448 + 2 * 2048 + 3 * 256 + 5 * 16 + 2);
  EXPECT_EQ(scale_byte(0), 8192u);
  EXPECT_EQ(scale_byte(3 * 64 + 63), 3u * 8448 + 8192 + 63 * 4);
}

// Every key byte of a page once, none among the scales, in either layout.
TEST(Pages, KeyBytesAreAPermutationOfTheKeyArea) {
  for (const PageLayout layout :
       {PageLayout::kPlain, PageLayout::kPreshuffled16}) {
    std::set<std::size_t> bytes;
    for (int slot = 64; slot < 128; ++slot)
      for (int dim = 0; dim < 128; ++dim)
        bytes.insert(key_byte(slot, dim, layout));
    EXPECT_EQ(bytes.size(), 8192u);
    EXPECT_EQ(*bytes.begin(), 8448u);
    EXPECT_EQ(*bytes.rbegin(), 8448u + 8191u);
  }
}

TEST(Pages, OffsetsPastTwoGigabytesStayExact) {
  EXPECT_EQ(key_byte(std::int64_t{300000} * 64, 1, PageLayout::kPlain),
            std::size_t{300000} * 8448 + 1);
}

TEST(Pages, SlotsFollowTheTable) {
  const std::array<std::int32_t, 3> table = {9, 4, 77};
  EXPECT_EQ(slot_of(table, 0), 9 * 64);
  EXPECT_EQ(slot_of(table, 63), 9 * 64 + 63);
  EXPECT_EQ(slot_of(table, 64), 4 * 64);
  EXPECT_EQ(slot_of(table, 190), 77 * 64 + 62);
  EXPECT_EQ(pages_of(0), 0);
  EXPECT_EQ(pages_of(1), 1);
  EXPECT_EQ(pages_of(64), 1);
  EXPECT_EQ(pages_of(65), 2);
}

}  // namespace
}  // namespace exact_topk::oracle
