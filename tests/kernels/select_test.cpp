// SPDX-License-Identifier: Apache-2.0
//
// xtk_select against the vectors, and against the oracle over lengths, windows
// and value families.

#include "oracle/select.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dumps/safetensors.h"
#include "tests/kernels/opened.h"

namespace exact_topk::tests {
namespace {

constexpr int32_t kUntouched = -123456;

xtk_open_options select_options(int wave) {
  auto options = small_options();
  options.wave_size = wave;
  return options;
}

// One row's list, selected from a window of a longer array, with guard entries
// around it.
struct Selected {
  std::vector<int32_t> list;  // the row's entries
  xtk_witness_row witness;    // its path
};

Selected select(const Opened& candidate, std::span<const float> scores, int k,
                const char* arm, int64_t lead = 3) {
  // What lies outside the row would win if it were taken.
  std::vector<float> window(static_cast<size_t>(lead) + scores.size() + 5,
                            std::numeric_limits<float>::infinity());
  std::copy(scores.begin(), scores.end(), window.begin() + lead);
  const int32_t length = static_cast<int32_t>(scores.size());
  const int32_t entries = std::min(length, k);
  const int32_t indptr = 7;
  std::vector<int32_t> list(static_cast<size_t>(entries) + 14, kUntouched);
  const xtk_select_args args{
      .struct_size = sizeof(args),
      .arm = arm,
      .rows = 1,
      .k = k,
      .scores = window.data(),
      .scores_count = static_cast<int64_t>(window.size()),
      .row_start = &lead,
      .lengths = &length,
      .page_table = nullptr,
      .table_width = 0,
      .indptr = &indptr,
      .list = list.data(),
      .list_entries = static_cast<int64_t>(list.size())};
  candidate.check(xtk_select(candidate.get(), &args));
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(list[static_cast<size_t>(i)], kUntouched);
    EXPECT_EQ(list[list.size() - 1 - static_cast<size_t>(i)], kUntouched);
  }
  return {{list.begin() + 7, list.end() - 7}, candidate.witness(0)};
}

void expect_base_order(const Opened& candidate,
                       const std::vector<float>& scores, int k) {
  const auto expected = oracle::base_order(scores, k);
  for (const char* arm : {"base", "head"}) {
    const Selected got = select(candidate, scores, k, arm);
    EXPECT_EQ(got.witness.stop_bits, expected.bits) << arm;
    EXPECT_TRUE(got.list == expected.positions)
        << arm << ", n " << scores.size() << ", k " << k;
  }
}

TEST(Select, Vectors) {
  for (const int wave : {32, 64}) {
    const Opened candidate(select_options(wave));
    for (const char* name : {"order", "order_edges"}) {
      const dumps::Safetensors file(std::string(EXACT_TOPK_TEST_DATA) +
                                    "/vectors/" + name + ".safetensors");
      std::set<std::string> rows;
      for (const auto& [tensor, entry] : file.tensors())
        rows.insert(tensor.substr(0, tensor.find('.')));
      EXPECT_EQ(rows.size() * 3, file.tensors().size());
      for (const std::string& row : rows) {
        SCOPED_TRACE(std::string(name) + "/" + row + ", wave " +
                     std::to_string(wave));
        for (const char* arm : {"base", "head"}) {
          const Selected got =
              select(candidate, file.read<float>(row + ".scores"), 2048, arm);
          EXPECT_TRUE(got.list == file.read<int32_t>(row + ".list")) << arm;
          EXPECT_EQ(got.witness.stop_bits, file.read<int32_t>(row + ".bits")[0])
              << arm;
        }
      }
    }
  }
}

// A family of rows: the score of position i.
struct Family {
  const char* name;                                // in messages
  float (*score)(std::mt19937_64& random, int i);  // of a position
};

float normal(std::mt19937_64& random) {
  return std::normal_distribution<float>()(random);
}

constexpr Family kFamilies[] = {
    {"normal", [](std::mt19937_64& random, int) { return normal(random); }},
    {"plateau of zeros",
     [](std::mt19937_64& random, int) {
       return std::max(0.0f, normal(random) - 1.28f);
     }},
    {"four values", [](std::mt19937_64& random,
                       int) { return static_cast<float>(random() % 4); }},
    {"equal", [](std::mt19937_64&, int) { return 1.5f; }},
    {"rising", [](std::mt19937_64&, int i) { return static_cast<float>(i); }},
    {"falling", [](std::mt19937_64&, int i) { return -static_cast<float>(i); }},
    {"low bits",
     [](std::mt19937_64& random, int) {
       return std::bit_cast<float>(0x3F900000u |
                                   static_cast<uint32_t>(random() & 1023));
     }},
    {"one bin",
     [](std::mt19937_64& random, int) {
       return 1.0f + 0.245f * static_cast<float>(random() % 65536) / 65536.0f;
     }},
    {"any bits",
     [](std::mt19937_64& random, int) {
       return std::bit_cast<float>(static_cast<uint32_t>(random() >> 32));
     }},
    {"signed zeros", [](std::mt19937_64& random,
                        int) { return (random() & 1) != 0 ? -0.0f : 0.0f; }},
    {"NaN and infinities",
     [](std::mt19937_64& random, int) {
       constexpr uint32_t kBits[] = {0x7FC00000u, 0xFFC00000u, 0x7F800000u,
                                     0xFF800000u, 0x7F800001u, 0u,
                                     0x80000000u};
       return std::bit_cast<float>(kBits[random() % 7]);
     }},
};

void expect_family(const Opened& candidate, const Family& family, int n,
                   int k) {
  SCOPED_TRACE(std::string(family.name) + ", n " + std::to_string(n));
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::vector<float> scores(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i)
    scores[static_cast<size_t>(i)] = family.score(random, i);
  expect_base_order(candidate, scores, k);
}

TEST(Select, FamiliesAtEveryEdgeOfTheLength) {
  const Opened candidate(select_options(64));
  for (const Family& family : kFamilies)
    for (const int n : {0, 1, 2047, 2048, 2049, 4095, 8192, 8193, 32767, 32768,
                        32769, 65535, 65537})
      expect_family(candidate, family, n, 2048);
}

TEST(Select, WavesOf32AndOtherOrders) {
  auto options = select_options(32);
  options.schedule = "random:11";
  const Opened candidate(options);
  for (const Family& family : kFamilies)
    for (const int n : {2051, 33333}) expect_family(candidate, family, n, 2048);
}

TEST(Select, EveryK) {
  const Opened candidate(select_options(64));
  for (const int k : {1, 2, 63, 64, 65, 512, 2047})
    for (const int n : {1, 64, 2047, 5000, 40000})
      expect_family(candidate, kFamilies[8], n, k);
}

TEST(Select, LongestRow) {
  const Opened candidate(select_options(64));
  expect_family(candidate, kFamilies[0], (1 << 20) + 64, 2048);
  expect_family(candidate, kFamilies[3], (1 << 20) + 1, 2048);
}

// Rows at every alignment, of different lengths, one of them empty, with a page
// table; each list where indptr says.
TEST(Select, RowsTogether) {
  const Opened candidate(select_options(64));
  std::mt19937_64 random(4);
  std::vector<float> scores(50000);
  for (float& s : scores) s = normal(random);
  const std::vector<int64_t> starts = {1, 34002, 7, 100, 5};
  const std::vector<int32_t> lengths = {33000, 3000, 0, 10, 2049};
  const std::vector<int32_t> indptr = {2060, 0, 4200, 4190, 4300};
  const int32_t width = 600;
  std::vector<int32_t> table(5 * 600);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<int32_t>((i * 7919) % 20011);
  std::vector<int32_t> list(7000, kUntouched);
  std::vector<int32_t> expected = list;
  for (size_t r = 0; r < 5; ++r) {
    const auto row = std::span<const float>(scores).subspan(
        static_cast<size_t>(starts[r]), static_cast<size_t>(lengths[r]));
    const auto order = oracle::base_order(row, 2048);
    for (size_t i = 0; i < order.positions.size(); ++i) {
      const int32_t p = order.positions[i];
      expected[static_cast<size_t>(indptr[r]) + i] =
          table[r * 600 + static_cast<size_t>(p / 64)] * 64 + p % 64;
    }
  }
  for (const char* arm : {"base", "head"}) {
    std::ranges::fill(list, kUntouched);
    const xtk_select_args args{.struct_size = sizeof(args),
                               .arm = arm,
                               .rows = 5,
                               .k = 2048,
                               .scores = scores.data(),
                               .scores_count = 50000,
                               .row_start = starts.data(),
                               .lengths = lengths.data(),
                               .page_table = table.data(),
                               .table_width = width,
                               .indptr = indptr.data(),
                               .list = list.data(),
                               .list_entries = 7000};
    candidate.check(xtk_select(candidate.get(), &args));
    EXPECT_TRUE(list == expected) << arm;
  }
}

// Exactly at the candidate room and one past it, at 12 and at 24 bits, on one
// block and on slices.
TEST(Select, CandidateRoomEdges) {
  const Opened candidate(select_options(64));
  for (const int n : {9000, 40000}) {
    for (const int sharing : {4095, 4096, 4097}) {
      for (const bool low : {false, true}) {
        SCOPED_TRACE(std::to_string(n) + " " + std::to_string(sharing) +
                     (low ? " at 24 bits" : " at 12 bits"));
        std::mt19937_64 random(9);
        std::vector<float> scores(static_cast<size_t>(n), -1.0f);
        // `sharing` keys in one 24-bit (or 12-bit) class; 4,097 or more in the
        // 12-bit class where 24 bits are meant.
        for (int i = 0; i < sharing; ++i)
          scores[static_cast<size_t>(i * 2)] = std::bit_cast<float>(
              0x3F800000u | static_cast<uint32_t>(low ? random() % 256
                                                      : random() % 0x100000));
        if (low)
          for (int i = 0; i < 200; ++i)
            scores[static_cast<size_t>(2 * i + 1)] = 1.05f;
        const auto expected = oracle::base_order(scores, 2048);
        EXPECT_EQ(expected.bits,
                  sharing <= 4096
                      ? (low ? (sharing + 200 > 4096 ? 24 : 12) : 12)
                      : (low ? 32 : 24));
        expect_base_order(candidate, scores, 2048);
      }
    }
  }
}

}  // namespace
}  // namespace exact_topk::tests
