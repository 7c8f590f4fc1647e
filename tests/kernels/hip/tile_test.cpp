// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "kernels/hip/mma.h"
#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

constexpr int kPageTokens = 64;
constexpr int kDims = 128;

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// A code's value by the definition of its format.
float code_value(int code, bool fnuz) {
  const int sign = code >> 7, exponent = code >> 3 & 15, mantissa = code & 7;
  if (fnuz ? code == 0x80 : (code & 0x7F) == 0x7F) return NAN;
  const int bias = fnuz ? 8 : 7;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - 3)
                               : std::ldexp(8 + mantissa, exponent - bias - 3);
  return static_cast<float>(sign == 1 ? -magnitude : magnitude);
}

std::size_t byte_of(int token, int dim, KeyLayout layout) {
  const int byte =
      layout == KeyLayout::plain
          ? token * 128 + dim
          : token / 16 * 2048 + dim / 16 * 256 + token % 16 * 16 + dim % 16;
  return static_cast<std::size_t>(byte);
}

// A page of codes with its queries, on the host.
struct Problem {
  int heads;                         // of every query
  bool fnuz;                         // the codes' format
  KeyLayout layout;                  // where the codes go
  std::vector<std::uint8_t> codes;   // [token][dim], whatever the layout
  std::vector<std::uint16_t> query;  // bf16 [row][heads][128]
  std::vector<float> weights;        // [row][heads]

  int rows() const { return static_cast<int>(weights.size()) / heads; }
  float key(int token, int dim) const {
    return code_value(codes[static_cast<std::size_t>(token * kDims + dim)],
                      fnuz);
  }
  float element(int row, int head, int dim) const {
    return from_bf16(
        query[static_cast<std::size_t>((row * heads + head) * kDims + dim)]);
  }
  float weight(int row, int head) const {
    return weights[static_cast<std::size_t>(row * heads + head)];
  }
  std::vector<std::uint8_t> page() const {
    std::vector<std::uint8_t> bytes(codes.size());
    for (int t = 0; t < kPageTokens; ++t)
      for (int d = 0; d < kDims; ++d)
        bytes[byte_of(t, d, layout)] =
            codes[static_cast<std::size_t>(t * kDims + d)];
    return bytes;
  }
};

template <int Wave, int Rows>
__global__ void score_page(const std::uint8_t* page, KeyLayout layout,
                           bool fnuz, const std::uint16_t* query,
                           const float* weights, int heads, int first_row,
                           int lanes_stored, float* out) {
  ScoreQuery queries[Rows];
  for (int r = 0; r < Rows; ++r)
    queries[r] = {query + (first_row + r) * heads * kDims,
                  weights + (first_row + r) * heads};
  for (int first = 0; first < kPageTokens; first += kTile) {
    const RowValues<Rows> values = score_tile_rows<Wave, Rows>(
        {page, first, layout, fnuz}, queries, heads);
    const float alone = score_tile_rows<Wave, 1>({page, first, layout, fnuz},
                                                 {queries[0]}, heads)
                            .value[0];
    for (int r = 0; r < Rows; ++r)
      if (lane<Wave>() < lanes_stored)
        out[(static_cast<int>(threadIdx.x) * 4 + first / kTile) * Rows + r] =
            r == 0 && __float_as_uint(alone) != __float_as_uint(values.value[0])
                ? NAN
                : values.value[r];
  }
}

// Scores [row][token] of a problem, Rows rows at a time. Every lane's value is
// looked at; a tile of one row that differs from the tile of several shows as
// NaN.
template <int Wave, int Rows>
std::vector<float> scores(const Problem& problem) {
  const ScopedOptions scope(with_wave(Wave));
  const auto bytes = problem.page();
  const DeviceArray<std::uint8_t> page{std::span<const std::uint8_t>(bytes)};
  const DeviceArray<std::uint16_t> query{
      std::span<const std::uint16_t>(problem.query)};
  const DeviceArray<float> weights{std::span<const float>(problem.weights)};
  std::vector<float> result(
      static_cast<std::size_t>(problem.rows() * kPageTokens));
  for (int first_row = 0; first_row + Rows <= problem.rows();
       first_row += Rows) {
    DeviceArray<float> out(Wave * 4 * Rows);
    EXPECT_EQ(launch(score_page<Wave, Rows>, 1, Wave, 0, page.data(),
                     problem.layout, problem.fnuz, query.data(), weights.data(),
                     problem.heads, first_row, Wave, out.data()),
              hipSuccess)
        << cpu::last_report();
    const auto host = out.host();
    for (std::size_t l = 0; l < Wave; ++l)
      for (std::size_t tile = 0; tile < 4; ++tile)
        for (std::size_t r = 0; r < Rows; ++r) {
          auto& value =
              result[(static_cast<std::size_t>(first_row) + r) * kPageTokens +
                     tile * 16 + l % 16];
          const float got = host[(l * 4 + tile) * Rows + r];
          if (l >= 16) {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(got),
                      std::bit_cast<std::uint32_t>(value))
                << "lane " << l;
          }
          value = got;
        }
  }
  return result;
}

// The order that mma.h promises, spelled out.
float promised(const Problem& p, int row, int token) {
  float sum = 0.0f;
  for (int h = 0; h < p.heads; ++h) {
    float dot = 0.0f;
    for (int d = 0; d < kDims; ++d)
      dot = std::fma(p.element(row, h, d), p.key(token, d), dot);
    sum = std::fma(p.weight(row, h), dot > 0 ? dot : 0.0f, sum);
  }
  return sum;
}

Problem random_problem(int rows, int heads, KeyLayout layout, bool fnuz,
                       unsigned seed) {
  std::mt19937 random(seed);
  Problem p{heads, fnuz, layout, std::vector<std::uint8_t>(kPageTokens * kDims),
            {},    {}};
  for (auto& code : p.codes) {
    do code = static_cast<std::uint8_t>(random());
    while (std::isnan(code_value(code, fnuz)));
  }
  std::normal_distribution<float> normal;
  for (int i = 0; i < rows * heads * kDims; ++i)
    p.query.push_back(static_cast<std::uint16_t>(
        std::bit_cast<std::uint32_t>(normal(random)) >> 16));
  for (int i = 0; i < rows * heads; ++i)
    p.weights.push_back(normal(random) / 64);
  return p;
}

constexpr KeyLayout kLayouts[] = {KeyLayout::plain, KeyLayout::preshuffled16};

TEST(ScoreTile, IsThePromisedOrderBitForBit) {
  for (const auto layout : kLayouts)
    for (const bool fnuz : {false, true})
      for (const int heads : {1, 3, 4, 32, 64}) {
        const Problem p = random_problem(4, heads, layout, fnuz,
                                         static_cast<unsigned>(heads));
        const auto by_4 = scores<64, 4>(p);
        EXPECT_EQ((scores<64, 1>(p)), by_4);
        EXPECT_EQ((scores<64, 2>(p)), by_4);
        EXPECT_EQ((scores<32, 4>(p)), by_4);
        for (int r = 0; r < 4; ++r)
          for (int t = 0; t < kPageTokens; ++t)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(
                          by_4[static_cast<std::size_t>(r * kPageTokens + t)]),
                      std::bit_cast<std::uint32_t>(promised(p, r, t)))
                << "row " << r << " token " << t << " heads " << heads;
      }
}

// Bound: every product of a bf16 and an e4m3 value is exact in f32, and a fused
// multiply-add rounds once, so a dot of 128 terms is off by at most g(128) *
// sum |q k| with g(n) = n u / (1 - n u), u = 2^-24; relu does not widen it. The
// sum over H heads rounds each term at most H times: in all g(128 + H) * sum_h
// |w_h| sum_d |q k|.
TEST(ScoreTile, IsWithinItsRoundingBoundOfALongDoubleLoop) {
  for (const bool fnuz : {false, true}) {
    const Problem p = random_problem(3, 32, KeyLayout::plain, fnuz, 11);
    const auto got = scores<64, 3>(p);
    const long double u = std::ldexp(1.0L, -24), g = 160 * u / (1 - 160 * u);
    for (int r = 0; r < 3; ++r)
      for (int t = 0; t < kPageTokens; ++t) {
        long double value = 0, size = 0;
        for (int h = 0; h < p.heads; ++h) {
          long double dot = 0, terms = 0;
          for (int d = 0; d < kDims; ++d) {
            const long double product =
                static_cast<long double>(p.element(r, h, d)) * p.key(t, d);
            dot += product;
            terms += std::fabs(product);
          }
          value += p.weight(r, h) * (dot > 0 ? dot : 0);
          size += std::fabs(static_cast<long double>(p.weight(r, h))) * terms;
        }
        EXPECT_LE(std::fabs(got[static_cast<std::size_t>(r * kPageTokens + t)] -
                            value),
                  g * size);
      }
  }
}

TEST(ScoreTile, IsExactOnSmallIntegers) {
  std::mt19937 random(3);
  for (const auto layout : kLayouts) {
    Problem p{32, false, layout, std::vector<std::uint8_t>(kPageTokens * kDims),
              {}, {}};
    constexpr std::uint8_t kIntegers[] = {
        0x00, 0x38, 0x40, 0x44, 0xB8, 0xC0, 0xC4, 0x80};  // 0 1 2 3 -1 -2 -3 -0
    for (auto& code : p.codes) code = kIntegers[random() % 8];
    for (int i = 0; i < 32 * kDims; ++i) {
      const float integer =
          static_cast<float>(static_cast<int>(random() % 9) - 4);
      p.query.push_back(static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(integer) >> 16));
    }
    for (int h = 0; h < 32; ++h)
      p.weights.push_back(
          static_cast<float>(static_cast<int>(random() % 7) - 3));
    const auto got = scores<64, 1>(p);
    for (int t = 0; t < kPageTokens; ++t) {
      int sum = 0;
      for (int h = 0; h < 32; ++h) {
        int dot = 0;
        for (int d = 0; d < kDims; ++d)
          dot += static_cast<int>(p.element(0, h, d)) *
                 static_cast<int>(p.key(t, d));
        sum += static_cast<int>(p.weight(0, h)) * std::max(dot, 0);
      }
      EXPECT_EQ(got[static_cast<std::size_t>(t)], static_cast<float>(sum));
    }
  }
}

// Head h of two reads dim (token * 2 + step) with +1 and -1 in turn: relu shows
// the positive and the negative codes.
TEST(ScoreTile, DecodesEveryCodeInEveryPlace) {
  for (const auto layout : kLayouts)
    for (const bool fnuz : {false, true}) {
      std::vector<int> seen(256);
      for (int start = 0; start < 256; start += 2) {
        Problem p{2,      fnuz,
                  layout, std::vector<std::uint8_t>(kPageTokens * kDims),
                  {},     {1.0f, -1.0f}};
        const int dim = start / 2;
        for (int t = 0; t < kPageTokens; ++t) {
          const int code = (start * 5 + t * 4 + t / 16) & 255;
          p.codes[static_cast<std::size_t>(t * kDims + dim)] =
              static_cast<std::uint8_t>(code);
          ++seen[static_cast<std::size_t>(code)];
        }
        p.query.resize(2 * kDims);
        p.query[static_cast<std::size_t>(dim)] = 0x3F80;          // 1
        p.query[static_cast<std::size_t>(kDims + dim)] = 0xBF80;  // -1
        const auto got = scores<64, 1>(p);
        for (int t = 0; t < kPageTokens; ++t) {
          const float value =
              p.key(t, dim);  // relu(v) - relu(-v) = v; relu(NaN) is +0
          EXPECT_EQ(got[static_cast<std::size_t>(t)],
                    std::isnan(value) ? 0.0f : value);
        }
      }
      for (int code = 0; code < 256; ++code)
        EXPECT_GT(seen[static_cast<std::size_t>(code)], 0) << code;
    }
}

// SPEC 3.5: relu(x) = x > 0 ? x : +0, and the sum starts from +0.0.
TEST(ScoreTile, ZerosAreExactAndPositive) {
  Problem p{2,
            false,
            KeyLayout::plain,
            std::vector<std::uint8_t>(kPageTokens * kDims, 0x38),
            {},
            {-1.0f, 1.0f}};
  p.query.assign(2 * kDims, 0xBF80);  // every dot is -128
  for (const float score : scores<64, 1>(p))
    EXPECT_EQ(std::bit_cast<std::uint32_t>(score), 0u);
  p.codes.assign(p.codes.size(), 0x7F);  // NaN
  for (const float score : scores<64, 1>(p))
    EXPECT_EQ(std::bit_cast<std::uint32_t>(score), 0u);
}

// ---- front tiles
// ----------------------------------------------------------------------------------------------------

float as_float(float v) { return v; }
float as_float(std::uint16_t v) { return from_bf16(v); }

template <class T>
std::vector<T> random_elements(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<T> elements(count);
  for (auto& e : elements) {
    const float value = normal(random);
    if constexpr (std::is_same_v<T, float>)
      e = value;
    else
      e = static_cast<T>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
  return elements;
}

template <int Wave, class Weight, class Input>
__global__ void front(const Weight* weights, int outputs, const Input* x,
                      int rows, int inputs, float* out) {
  const auto values =
      front_tile<Wave>(weights, inputs, outputs, x, inputs, rows, inputs);
  for (int r = 0; r < kTileRows; ++r)
    out[static_cast<int>(threadIdx.x) * kTileRows + r] = values.value[r];
}

template <int Wave, class Weight, class Input>
void check_front(int outputs, int rows, int inputs) {
  const ScopedOptions scope(with_wave(Wave));
  std::mt19937 random(
      static_cast<unsigned>(outputs * 1000 + rows * 100 + inputs));
  const auto weights = random_elements<Weight>(
      static_cast<std::size_t>(outputs * inputs), random);
  const auto x =
      random_elements<Input>(static_cast<std::size_t>(rows * inputs), random);
  const DeviceArray<Weight> device_weights{std::span<const Weight>(weights)};
  const DeviceArray<Input> device_x{std::span<const Input>(x)};
  DeviceArray<float> out(Wave * kTileRows);
  ASSERT_EQ(
      launch(front<Wave, Weight, Input>, 1, Wave, 0, device_weights.data(),
             outputs, device_x.data(), rows, inputs, out.data()),
      hipSuccess)
      << cpu::last_report();
  const auto host = out.host();
  for (int l = 0; l < Wave; ++l)
    for (int r = 0; r < kTileRows; ++r) {
      const int o = l % kTile;
      float expected = 0;
      if (o < outputs && r < rows) {  // the promised order
        float partial[8] = {};
        for (int i = 0; i < inputs; ++i)
          partial[i % 8] = std::fma(
              as_float(weights[static_cast<std::size_t>(o * inputs + i)]),
              as_float(x[static_cast<std::size_t>(r * inputs + i)]),
              partial[i % 8]);
        for (int d = 4; d > 0; d /= 2)
          for (int i = 0; i < d; ++i) partial[i] += partial[i + d];
        expected = partial[0];
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(
                    host[static_cast<std::size_t>(l * kTileRows + r)]),
                std::bit_cast<std::uint32_t>(expected))
          << "output " << o << " row " << r << " of " << rows << ", " << inputs
          << " inputs";
    }
}

TEST(FrontTile, IsThePromisedOrderBitForBit) {
  for (int rows = 1; rows <= kTileRows; ++rows)
    for (const int inputs : {8, 100, 1536}) {
      check_front<64, std::uint16_t, std::uint16_t>(16, rows, inputs);
      check_front<64, float, std::uint16_t>(16, rows, inputs);
      check_front<32, std::uint16_t, float>(16, rows, inputs);
    }
  for (const int outputs : {1, 2, 3, 7, 15}) {
    check_front<64, std::uint16_t, std::uint16_t>(outputs, 3, 77);
    check_front<32, float, float>(outputs, 8, 3);
  }
}

}  // namespace
}  // namespace exact_topk::hip::test
