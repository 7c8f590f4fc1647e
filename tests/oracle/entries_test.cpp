// SPDX-License-Identifier: Apache-2.0
#include "oracle/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace exact_topk::oracle {
namespace {

using testing::ElementsAre;

TEST(Entries, ThatArePositionsAreKeysPaddingOrNothing) {
  const std::vector<std::int64_t> entries{0,  9,  10,
                                          -1, -2, std::int64_t{1} << 32};
  EXPECT_THAT(positions_of_entries(entries, 10),
              ElementsAre(0, 9, kNoKey, -1, kNoKey, kNoKey));
}

// 70 keys on pages 5 and 2: the second holds 6 of them.
TEST(Entries, ThatAreSlotsGoThroughThePages) {
  const std::vector<std::int64_t> slots{
      5 * 64, 5 * 64 + 63, 2 * 64 + 5, 2 * 64 + 6,
      3 * 64, -1,          -64,        (std::int64_t{1} << 32) + 2 * 64};
  const std::vector<std::int32_t> pages{5, 2};
  EXPECT_THAT(positions_of_slots(slots, pages, 70),
              ElementsAre(0, 63, 69, kNoKey, kNoKey, -1, kNoKey, kNoKey));
}

TEST(Entries, PagesAreInTheCacheAndNamedOnce) {
  const auto fault = [](std::vector<std::int32_t> pages) {
    return page_fault(pages, 8);
  };
  EXPECT_FALSE(fault({}));
  EXPECT_FALSE(fault({7, 0, 3}));
  EXPECT_EQ(fault({7, 0, 8})->page, 8);
  EXPECT_EQ(fault({0, -1})->page, -1);
  EXPECT_FALSE(fault({1, 1, -1})->twice);  // outside goes first
  EXPECT_EQ(fault({3, 1, 3})->page, 3);
  EXPECT_TRUE(fault({3, 1, 3})->twice);
}

}  // namespace
}  // namespace exact_topk::oracle
