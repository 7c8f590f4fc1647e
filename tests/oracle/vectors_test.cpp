// SPDX-License-Identifier: Apache-2.0
//
// Every tensor of every file of tests/data/vectors, compared with what the
// oracle computes: bit for bit, but for the f64 scores, which another order of
// sums may round differently.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "dumps/safetensors.h"
#include "oracle/formats.h"
#include "oracle/scores.h"
#include "oracle/select.h"
#include "oracle/stages.h"

namespace exact_topk::oracle {
namespace {

// A vectors file that knows which of its tensors were read: a test that leaves
// one out fails.
class Vectors {
 public:
  explicit Vectors(const std::string& name)
      : file_(std::string(EXACT_TOPK_TEST_DATA) + "/vectors/" + name +
              ".safetensors") {}
  ~Vectors() {
    for (const auto& [name, entry] : file_.tensors())
      EXPECT_TRUE(used_.contains(name)) << name << " was never compared";
  }
  template <typename T>
  std::vector<T> read(const std::string& name) {
    used_.insert(name);
    return file_.read<T>(name);
  }
  const dumps::Safetensors& file() const { return file_; }

 private:
  dumps::Safetensors file_;
  std::set<std::string> used_;
};

template <typename T>
std::span<const T> row_of(const std::vector<T>& values, std::size_t row,
                          std::size_t width) {
  return std::span(values).subspan(row * width, width);
}

Head head_of(const std::vector<float>& values, std::size_t row) {
  Head head;
  std::ranges::copy(row_of(values, row, 128), head.begin());
  return head;
}

void expect_bits(std::span<const float> actual, std::span<const float> expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(actual[i]),
              std::bit_cast<std::uint32_t>(expected[i]))
        << what << " element " << i << ": " << actual[i] << " is not "
        << expected[i];
}

// Positions only say which row of cos and sin was taken: the table's rows are
// given, and cases/ owns the formula. It is checked here all the same.
void expect_rope_table(const std::vector<std::int32_t>& positions,
                       const std::vector<float>& cos,
                       const std::vector<float>& sin, double theta) {
  for (std::size_t r = 0; r < positions.size(); ++r) {
    for (std::size_t i = 0; i < 32; ++i) {
      const double angle =
          double(positions[r]) * std::pow(theta, -2.0 * double(i) / 64.0);
      EXPECT_EQ(cos[r * 32 + i], static_cast<float>(std::cos(angle)));
      EXPECT_EQ(sin[r * 32 + i], static_cast<float>(std::sin(angle)));
    }
  }
}

TEST(Vectors, E4m3) {
  Vectors vectors("e4m3");
  const auto value = vectors.read<float>("value");
  for (std::size_t code = 0; code < 256; ++code) {
    const float actual =
        e4m3_to_f32(static_cast<std::uint8_t>(code), Fp8::kE4m3fn);
    if (std::isnan(value[code])) {
      EXPECT_TRUE(std::isnan(actual)) << code;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(actual),
                std::bit_cast<std::uint32_t>(value[code]))
          << code;
    }
  }
}

TEST(Vectors, Encode) {
  Vectors vectors("encode");
  const auto x = vectors.read<float>("x");
  const auto codes = vectors.read<std::uint8_t>("e4m3fn");
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(f32_to_e4m3(x[i], Fp8::kE4m3fn), codes[i]) << x[i];
  const auto wide = vectors.read<float>("bf16_in");
  const auto narrow = vectors.read<std::uint16_t>("bf16");
  for (std::size_t i = 0; i < wide.size(); ++i)
    EXPECT_EQ(f32_to_bf16(wide[i]), narrow[i]) << wide[i];
}

TEST(Vectors, Quantise) {
  Vectors vectors("quantise");
  const auto key = vectors.read<float>("key");
  const auto bytes = vectors.read<std::uint8_t>("bytes");
  const auto scale = vectors.read<float>("scale");
  const auto bytes_f32 = vectors.read<std::uint8_t>("bytes_f32_scale");
  const auto scale_f32 = vectors.read<float>("scale_f32");
  for (std::size_t r = 0; r < scale.size(); ++r) {
    const CachedKey ue8m0 =
        quantise(head_of(key, r), Scale::kUe8m0, Fp8::kE4m3fn);
    EXPECT_EQ(ue8m0.scale, scale[r]) << r;
    EXPECT_TRUE(std::ranges::equal(ue8m0.bytes, row_of(bytes, r, 128))) << r;
    const CachedKey f32 = quantise(head_of(key, r), Scale::kF32, Fp8::kE4m3fn);
    EXPECT_EQ(f32.scale, scale_f32[r]) << r;
    EXPECT_TRUE(std::ranges::equal(f32.bytes, row_of(bytes_f32, r, 128))) << r;
  }
}

TEST(Vectors, Query) {
  Vectors vectors("query");
  const auto mailbox = vectors.read<float>("mailbox");
  const auto positions = vectors.read<std::int32_t>("positions");
  const auto cos = vectors.read<float>("cos");
  const auto sin = vectors.read<float>("sin");
  const auto expected = vectors.read<std::uint16_t>("expected");
  const Geometry geometry = glm53();
  expect_rope_table(positions, cos, sin, geometry.theta);
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const std::vector<std::uint16_t> query =
        index_query(row_of(mailbox, r, 32 * 128),
                    {row_of(cos, r, 32), row_of(sin, r, 32)}, geometry);
    const auto row = row_of(expected, r, 32 * 128);
    for (std::size_t i = 0; i < query.size(); ++i)
      ASSERT_EQ(query[i], row[i]) << "row " << r << " element " << i;
  }
}

TEST(Vectors, Key) {
  Vectors vectors("key");
  const auto raw = vectors.read<float>("raw");
  const auto gamma = vectors.read<float>("gamma");
  const auto beta = vectors.read<float>("beta");
  const auto positions = vectors.read<std::int32_t>("positions");
  const auto cos = vectors.read<float>("cos");
  const auto sin = vectors.read<float>("sin");
  const auto bytes = vectors.read<std::uint8_t>("bytes");
  const auto scale = vectors.read<float>("scale");
  const auto bytes_f32 = vectors.read<std::uint8_t>("bytes_f32_scale");
  const auto scale_f32 = vectors.read<float>("scale_f32");
  Geometry geometry = glm53();
  expect_rope_table(positions, cos, sin, geometry.theta);
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const RopeRow rope_row{row_of(cos, r, 32), row_of(sin, r, 32)};
    geometry.scale = Scale::kUe8m0;
    const CachedKey ue8m0 =
        index_key(row_of(raw, r, 128), gamma, beta, rope_row, geometry);
    EXPECT_EQ(ue8m0.scale, scale[r]) << r;
    EXPECT_TRUE(std::ranges::equal(ue8m0.bytes, row_of(bytes, r, 128))) << r;
    geometry.scale = Scale::kF32;
    const CachedKey f32 =
        index_key(row_of(raw, r, 128), gamma, beta, rope_row, geometry);
    EXPECT_EQ(f32.scale, scale_f32[r]) << r;
    EXPECT_TRUE(std::ranges::equal(f32.bytes, row_of(bytes_f32, r, 128))) << r;
  }
}

TEST(Vectors, Stages) {
  Vectors vectors("stages");
  const auto raw = vectors.read<float>("raw");
  const auto gamma = vectors.read<float>("gamma");
  const auto beta = vectors.read<float>("beta");
  const auto positions = vectors.read<std::int32_t>("positions");
  const auto cos = vectors.read<float>("cos");
  const auto sin = vectors.read<float>("sin");
  const auto mean = vectors.read<float>("mean");
  const auto var = vectors.read<float>("var");
  const auto layernorm = vectors.read<float>("layernorm");
  const auto interleaved = vectors.read<float>("rope_interleaved");
  const auto half_split = vectors.read<float>("rope_half_split");
  const auto hadamard = vectors.read<float>("hadamard");
  const auto key = vectors.read<float>("key");
  const Geometry geometry = glm53();
  expect_rope_table(positions, cos, sin, geometry.theta);
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const RopeRow rope_row{row_of(cos, r, 32), row_of(sin, r, 32)};
    const KeyStages stages =
        key_stages(row_of(raw, r, 128), gamma, beta, rope_row, geometry);
    const std::string at = " of row " + std::to_string(r);
    expect_bits({&stages.mean, 1}, {&mean[r], 1}, "mean" + at);
    expect_bits({&stages.var, 1}, {&var[r], 1}, "var" + at);
    expect_bits(stages.layer_norm, row_of(layernorm, r, 128), "layernorm" + at);
    expect_bits(stages.rope, row_of(interleaved, r, 128), "rope" + at);
    expect_bits(rope(stages.layer_norm, rope_row, Rope::kHalfSplit),
                row_of(half_split, r, 128), "half-split rope" + at);
    expect_bits(stages.hadamard, row_of(hadamard, r, 128), "hadamard" + at);
    expect_bits(stages.key, row_of(key, r, 128), "key" + at);
  }
}

TEST(Vectors, Scores) {
  Vectors vectors("scores");
  const auto query = vectors.read<std::uint16_t>("index_q");
  const auto weights = vectors.read<float>("head_weights");
  const auto cache = vectors.read<std::uint8_t>("index_cache");
  const auto expected = vectors.read<double>("scores_f64");
  std::vector<std::int32_t> table(cache.size() / kPageBytes);
  for (std::size_t p = 0; p < table.size(); ++p)
    table[p] = static_cast<std::int32_t>(p);
  const std::int64_t keys = 700;
  const std::vector<ScoreRow> rows = {
      {row_of(query, 0, 4096), row_of(weights, 0, 32), table, keys},
      {row_of(query, 1, 4096), row_of(weights, 1, 32), table, keys}};
  const std::vector<RowScores> actual = scores(rows, cache, glm53());
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(actual[r].value.size(), 700u);
    for (std::size_t j = 0; j < 700; ++j)
      ASSERT_NEAR(actual[r].value[j], expected[r * 700 + j],
                  1e-13 * actual[r].largest)
          << "row " << r << " key " << j;
  }
}

class OrderVectors : public testing::TestWithParam<const char*> {};

TEST_P(OrderVectors, ListsAndBits) {
  Vectors vectors(GetParam());
  std::set<std::string> rows;
  for (const auto& [name, entry] : vectors.file().tensors())
    rows.insert(name.substr(0, name.find('.')));
  ASSERT_FALSE(rows.empty());
  for (const std::string& row : rows) {
    const auto scores = vectors.read<float>(row + ".scores");
    const BaseOrder order = base_order(scores, 2048);
    EXPECT_EQ(order.positions, vectors.read<std::int32_t>(row + ".list"))
        << row;
    EXPECT_EQ(order.bits, vectors.read<std::int32_t>(row + ".bits").at(0))
        << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OrderVectors,
                         testing::Values("order", "order_edges"));

}  // namespace
}  // namespace exact_topk::oracle
