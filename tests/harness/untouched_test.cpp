// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/untouched.h"

#include <gtest/gtest.h>

#include <cstring>

#include "harness/guarded_buffer.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

constexpr int kPages = 5;
using Cache = std::vector<std::byte>;

TEST(CacheImage, SeesEveryByteButTheOwnSlots) {
  const Cache before(size_t{kPages} * oracle::kPageBytes, std::byte{7});
  const int64_t slot = 2 * 64 + 63;
  Cache now = before;
  const size_t own_byte =
                   oracle::key_byte(slot, 127, oracle::PageLayout::kPlain),
               own_scale = oracle::scale_byte(slot) + 3;
  now[own_byte] = now[own_scale] = std::byte{9};
  CacheImage image(before);
  EXPECT_EQ(image.first_difference(now, 0), int64_t(own_byte));
  image.take_slot(now, slot, oracle::PageLayout::kPlain);
  EXPECT_EQ(image.first_difference(now, 0), -1);
  // First and last bytes of the cache, of the page with the slot and of its
  // neighbours.
  for (const size_t at :
       {size_t{0}, size_t{2 * 8448} - 1, size_t{2 * 8448}, own_byte - 1,
        own_byte + 1, own_scale + 1, size_t{3 * 8448}, now.size() - 1}) {
    if (at == own_scale + 1 && at % 8448 == 0) continue;
    const std::byte held = now[at];
    now[at] = std::byte{1};
    EXPECT_EQ(image.first_difference(now, 0), int64_t(at));
    now[at] = held;
  }
  // A slot that changes after it was taken over is a fault as well.
  now[own_byte] = std::byte{10};
  EXPECT_EQ(image.first_difference(now, 0), int64_t(own_byte));
}

TEST(CacheImage, ComparesChunksThatBeginInsideAPage) {
  const Cache before(size_t{kPages} * oracle::kPageBytes, std::byte{7});
  Cache now = before;
  const int64_t slot = 64 + 5;
  now[oracle::scale_byte(slot)] = std::byte{1};
  CacheImage image(before);
  image.take_slot(now, slot, oracle::PageLayout::kPreshuffled16);
  const std::span<const std::byte> all(now);
  for (const size_t begin :
       {size_t{0}, size_t{100}, size_t{8448}, size_t{9000}, size_t{16896}})
    for (const size_t length : {size_t{1}, size_t{8448}, size_t{20000}})
      EXPECT_EQ(image.first_difference(all.subspan(begin, length), begin), -1);
  now[9500] = std::byte{0};
  EXPECT_EQ(image.first_difference(all.subspan(9000, 1000), 9000), 9500);
  EXPECT_EQ(image.first_difference(all.subspan(9501, 1000), 9501), -1);
}

TEST(GuardedBuffer, SeesWritesBeforeBetweenAndBehind) {
  GuardedBuffer<int32_t> buffer(20, XTK_LIST);
  const std::pair<int64_t, int64_t> own[] = {{3, 4}, {10, 2}};
  buffer.fill({1, 0, 0, 0});
  EXPECT_EQ(buffer.fault(own), "");
  for (const int64_t mine : {3, 6, 10, 11}) buffer.data()[mine] = 5;
  EXPECT_EQ(buffer.fault(own), "");
  for (const int64_t other : {-256, -1, 0, 2, 7, 9, 12, 19, 20, 275}) {
    buffer.fill({1, 0, 0, 0});
    buffer.data()[other] ^= 0x100;
    EXPECT_NE(buffer.fault(own), "") << other;
  }
}

TEST(GuardedBuffer, RemembersWhatWasThere) {
  GuardedBuffer<float> buffer(8, XTK_SCORES);
  buffer.fill({1, 0, 0, 3});
  const std::vector<float> before = buffer.before(2, 5);
  EXPECT_EQ(std::memcmp(before.data(), buffer.data() + 2, 5 * sizeof(float)),
            0);
}

}  // namespace
}  // namespace exact_topk::harness
