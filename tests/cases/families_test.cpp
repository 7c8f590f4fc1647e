// SPDX-License-Identifier: Apache-2.0
#include "cases/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "cases/plan.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

constexpr size_t kK = 2048;

// The radix key of SPEC section 3, written down anew.
uint32_t key(float score) {
  const auto u = std::bit_cast<uint32_t>(score);
  return (u >> 31) != 0 ? ~u : u | 0x80000000u;
}

using Row = std::vector<float>;

// Row 0 of a family at its own length.
Row row_of(const std::string& name, uint64_t seed = 1) {
  const SelectRows rows =
      select_rows(case_of("--stage select --rows 2 --rows-from " + name), seed);
  return {rows.scores.begin() + rows.row_start[0],
          rows.scores.begin() + rows.row_start[0] + rows.lengths[0]};
}

uint32_t threshold(const Row& row) {
  std::vector<uint32_t> keys;
  for (const float score : row) keys.push_back(key(score));
  std::nth_element(keys.begin(), keys.begin() + kK - 1, keys.end(),
                   std::greater<>());
  return keys[kK - 1];
}

int64_t count(const Row& row, const std::function<bool(float)>& held) {
  return std::count_if(row.begin(), row.end(), held);
}

int64_t sharing(const Row& row, int bits) {
  const uint32_t t = threshold(row) >> (32 - bits);
  return count(row, [&](float x) { return key(x) >> (32 - bits) == t; });
}

TEST(Families, WinnersStandAboveAPlateau) {
  const std::map<std::string, int64_t> expected = {
      {"winners-0", 0},      {"winners-1", 1},    {"winners-100", 100},
      {"winners-k-1", 2047}, {"winners-k", 2048}, {"winners-k+1", 2049}};
  for (const auto& [name, winners] : expected) {
    const Row row = row_of(name);
    EXPECT_EQ(row.size(), 8320u);
    EXPECT_EQ(count(row, [](float x) { return x > 0; }), winners) << name;
    EXPECT_EQ(count(row, [](float x) { return key(x) == key(0.0f); }),
              8320 - winners)
        << name;
  }
}

TEST(Families, CoarseBinsHaveTheirMembersAndTheThreshold) {
  for (const int64_t members :
       {2048, 2049, 3708, 3709, 4096, 4097, 16384, 16385}) {
    const Row row = row_of("coarse-bin-" + std::to_string(members));
    EXPECT_EQ(count(row, [](float x) { return x >= 1.0f && x < 1.245f; }),
              members);
    EXPECT_EQ(count(row, [](float x) { return x >= 1.245f; }), 0);
    EXPECT_EQ(count(row, [](float x) { return x < 0.5f; }),
              static_cast<int64_t>(row.size()) - members);
  }
  const Row split = row_of("coarse-bin-split");
  EXPECT_EQ(count(split, [](float x) { return x >= 1.245f; }), 889);
  EXPECT_EQ(count(split, [](float x) { return x >= 1.0f && x < 1.245f; }),
            1536);
}

TEST(Families, ShareExactlyTheCandidateRoomAndOneMore) {
  EXPECT_EQ(sharing(row_of("share-12-4096"), 12), 4096);
  EXPECT_EQ(sharing(row_of("share-12-4097"), 12), 4097);
  EXPECT_LE(sharing(row_of("share-12-4097"), 24), 4096);
  EXPECT_EQ(sharing(row_of("share-24-4096"), 24), 4096);
  EXPECT_GT(sharing(row_of("share-24-4096"), 12), 4096);
  EXPECT_EQ(sharing(row_of("share-24-4097"), 24), 4097);
}

TEST(Families, LowMantissaBits) {
  const Row random = row_of("low-bits-random"),
            from_one = row_of("low-bits-one"), small = row_of("low-bits-small");
  std::set<uint32_t> low;
  for (size_t i = 0; i < random.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(random[i]) & ~1023u, 0x3F900000u);
    low.insert(std::bit_cast<uint32_t>(random[i]) & 1023u);
    EXPECT_EQ(std::bit_cast<uint32_t>(from_one[i]), 0x3F800000u + i);
    EXPECT_EQ(std::bit_cast<uint32_t>(small[i]), 0x3805ED27u + i);
  }
  EXPECT_GT(low.size(), 1000u);
}

TEST(Families, EqualButLast) {
  const Row row = row_of("equal-but-last");
  EXPECT_EQ(count(row, [](float x) { return x == 1.0f; }),
            static_cast<int64_t>(row.size()) - 1);
  EXPECT_EQ(std::bit_cast<uint32_t>(row.back()), 0x3F800001u);
  EXPECT_EQ(threshold(row), key(1.0f));
}

TEST(Families, Fp16Midpoints) {
  const Row row = row_of("fp16-midpoints");
  EXPECT_EQ(count(row, [](float x) { return x == -0.5f; }), 2000);
  EXPECT_EQ(
      count(row,
            [](float x) { return std::bit_cast<uint32_t>(x) == 0xBF97F000u; }),
      100);
  EXPECT_EQ(count(row, [](float x) { return x == -3.0f; }),
            static_cast<int64_t>(row.size()) - 2100);
  EXPECT_EQ(threshold(row), key(std::bit_cast<float>(0xBF97F000u)));
}

TEST(Families, RangesOfValues) {
  const auto all = [](const std::string& name,
                      const std::function<bool(float)>& held) {
    const Row row = row_of(name);
    return count(row, held) == static_cast<int64_t>(row.size());
  };
  const auto both_signs = [](const std::string& name) {
    const Row row = row_of(name);
    const int64_t negative =
        count(row, [](float x) { return std::signbit(x); });
    return negative > 3000 &&
           negative < static_cast<int64_t>(row.size()) - 3000;
  };
  EXPECT_TRUE(all("huge", [](float x) {
    return std::isfinite(x) && std::fabs(x) > 65504;
  }));
  EXPECT_TRUE(both_signs("huge"));
  EXPECT_TRUE(all("fp16-subnormal", [](float x) {
    return std::fabs(x) >= 0x1p-24f && std::fabs(x) < 0x1p-14f;
  }));
  EXPECT_TRUE(both_signs("fp16-subnormal"));
  EXPECT_TRUE(
      all("f32-subnormal", [](float x) { return std::fabs(x) < 0x1p-126f; }));
  EXPECT_TRUE(both_signs("f32-subnormal"));
  EXPECT_TRUE(
      all("tiny-sigma", [](float x) { return std::fabs(x - 8) < 0x1p-15f; }));
  EXPECT_TRUE(all("tiny-sigma-negative",
                  [](float x) { return std::fabs(x + 8) < 0x1p-15f; }));
  EXPECT_TRUE(all("bf16-rounded", [](float x) {
    return (std::bit_cast<uint32_t>(x) & 0xFFFFu) == 0;
  }));
  EXPECT_TRUE(all("relu", [](float x) { return x >= 0 && !std::signbit(x); }));
  // relu(normal - 1.28) is zero for nine of ten.
  const Row relu = row_of("relu");
  EXPECT_NEAR(static_cast<double>(count(relu, [](float x) { return x == 0; })) /
                  static_cast<double>(relu.size()),
              0.9, 0.02);
  const Row eight = row_of("eight-values");
  EXPECT_EQ(std::set<float>(eight.begin(), eight.end()).size(), 8u);
  const Row tiny = row_of("tiny-sigma");
  EXPECT_GT(std::set<float>(tiny.begin(), tiny.end()).size(), 20u);
}

TEST(Families, Nans) {
  const auto positive = [](float x) {
    return std::isnan(x) && !std::signbit(x);
  };
  const auto negative = [](float x) {
    return std::isnan(x) && std::signbit(x);
  };
  for (const int64_t n : {1, 3, 4096}) {
    const Row row = row_of("nan-" + std::to_string(n));
    EXPECT_EQ(count(row, positive), n);
    EXPECT_EQ(count(row, negative), 0);
  }
  EXPECT_EQ(count(row_of("nan-tail"), positive), 1);
  EXPECT_TRUE(std::isnan(row_of("nan-tail").back()));
  EXPECT_EQ(count(row_of("nan-negative"), negative), 4096);
  EXPECT_EQ(count(row_of("nan-negative"), positive), 0);
  for (const char* name : {"few-numbers", "few-numbers-negative"}) {
    const Row row = row_of(name);
    EXPECT_EQ(count(row, [](float x) { return !std::isnan(x); }), 1024);
    EXPECT_EQ(count(row, negative) > 0,
              std::string(name) == "few-numbers-negative");
    EXPECT_EQ(count(row, positive) > 0, std::string(name) == "few-numbers");
  }
}

TEST(Families, InfinitiesAndZeros) {
  EXPECT_EQ(
      count(row_of("plus-infinities"), [](float x) { return x == INFINITY; }),
      2100);
  EXPECT_EQ(threshold(row_of("minus-infinities")), key(-INFINITY));
  EXPECT_EQ(count(row_of("minus-infinities"),
                  [](float x) { return std::isfinite(x); }),
            1024);
  EXPECT_EQ(threshold(row_of("signed-zeros")), key(0.0f));
  EXPECT_GT(count(row_of("signed-zeros"),
                  [](float x) { return key(x) == key(-0.0f); }),
            3000);
  EXPECT_EQ(threshold(row_of("negative-zeros")), key(-0.0f));
  EXPECT_EQ(count(row_of("negative-zeros"),
                  [](float x) { return key(x) == key(0.0f); }),
            512);
}

TEST(Families, MonotoneRows) {
  const Row rising = row_of("rising"), falling = row_of("falling");
  EXPECT_EQ(
      std::adjacent_find(rising.begin(), rising.end(), std::greater_equal<>()),
      rising.end());
  EXPECT_EQ(
      std::adjacent_find(falling.begin(), falling.end(), std::less_equal<>()),
      falling.end());
}

TEST(Families, PlacesOfWinners) {
  // Side by side, in a sixteenth of the row.
  const Row one = row_of("one-slice");
  const uint32_t least = threshold(one);
  std::vector<int64_t> places;
  for (size_t i = 0; i < one.size(); ++i)
    if (key(one[i]) >= least) places.push_back(static_cast<int64_t>(i));
  EXPECT_EQ(places.size(), kK);
  EXPECT_EQ(places.back() - places.front() + 1, static_cast<int64_t>(kK));
  EXPECT_EQ(places.front() * 16 / static_cast<int64_t>(one.size()),
            places.back() * 16 / static_cast<int64_t>(one.size()));
  // Only in the last partial vector.
  const Row last = row_of("last-vector");
  EXPECT_NE(last.size() % 4, 0u);
  for (size_t i = 0; i < last.size(); ++i)
    EXPECT_EQ(last[i] > 1.0f, i >= last.size() / 4 * 4) << i;
  // One in each 64th.
  const Row spread = row_of("one-a-slice");
  std::set<size_t> winners;
  for (size_t i = 0; i < spread.size(); ++i)
    if (spread[i] > 1.0f) winners.insert((i * 64 + 63) / spread.size());
  EXPECT_EQ(winners.size(), 64u);
  EXPECT_EQ(count(spread, [](float x) { return x > 1.0f; }), 64);
}

TEST(Families, RowsHaveLengthsStartsAndBait) {
  const SelectRows rows = select_rows(
      case_of("--stage select --rows 8 --rows-from random --pos 9999"), 1);
  EXPECT_EQ(rows.lengths,
            (std::vector<int32_t>{10000, 9999, 7500, 2049, 2048, 2047, 1, 0}));
  int64_t end = 0;
  const auto bait = [&](int64_t from, int64_t to) {
    EXPECT_GE(to - from, 4);
    for (int64_t i = from; i < to; ++i) {
      const float x = rows.scores[static_cast<size_t>(i)];
      EXPECT_TRUE(std::isnan(x) || x >= 3e38f) << i;
    }
  };
  for (size_t r = 0; r < 8; ++r) {
    EXPECT_EQ(rows.row_start[r] % 4, static_cast<int64_t>((r + 1) % 4));
    bait(end, rows.row_start[r]);
    end = rows.row_start[r] + rows.lengths[r];
  }
  bait(end, static_cast<int64_t>(rows.scores.size()));
  EXPECT_FALSE(std::is_sorted(rows.indptr.begin(), rows.indptr.end()));
  EXPECT_EQ(
      select_rows(case_of("--stage select --rows 4 --rows-from random --pos 0"),
                  1)
          .lengths,
      (std::vector<int32_t>{1, 0, 1, 1}));
}

TEST(Families, EveryOneWorksAtEveryLengthAndK) {
  for (const std::string& name : family_names()) {
    for (const char* options : {" --pos 0", " --pos 2", " --pos 70",
                                " --pos 2048 --k 5", " --pos 9000 --k 1"}) {
      const Case c =
          case_of("--stage select --rows 8 --rows-from " + name + options);
      const SelectRows rows = select_rows(c, 7);
      EXPECT_EQ(rows.lengths.size(), 8u);
      EXPECT_LE(rows.row_start.back() + rows.lengths.back(),
                static_cast<int64_t>(rows.scores.size()));
      EXPECT_EQ(std::memcmp(rows.scores.data(), select_rows(c, 7).scores.data(),
                            rows.scores.size() * 4),
                0);
    }
  }
}

TEST(Families, OwnLengthsHaveTheProperty) {
  std::set<std::string> names;
  for (const Family& f : families()) {
    EXPECT_TRUE(names.insert(f.name).second);
    EXPECT_GT(f.own_keys, f.min_keys) << f.name;
    EXPECT_FALSE(f.description.empty());
    EXPECT_EQ(
        make_plan(case_of("--stage select --rows 2 --rows-from " + f.name), 1)
            .skipped,
        "");
  }
  EXPECT_NE(row_of("random", 1), row_of("random", 2));
}

}  // namespace
}  // namespace exact_topk::cases
