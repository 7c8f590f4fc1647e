// SPDX-License-Identifier: Apache-2.0
#include "oracle/scores.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "oracle/formats.h"
#include "oracle/pages.h"

namespace exact_topk::oracle {
namespace {

constexpr int kBlockPages = 2;
constexpr int kBlockKeys = kBlockPages * kPageTokens;

// A block of keys, decoded.
struct KeyBlock {
  // [key][dim]: the values of the codes, without the scale
  Eigen::Matrix<double, kBlockKeys, kHeadDim, Eigen::RowMajor> keys;
  std::array<double, kBlockKeys> norm;   // Euclidean, of each key
  std::array<double, kBlockKeys> scale;  // of each key
};

// What a row brings to every block.
struct RowState {
  std::vector<double> magnitude;  // [H] |w_h|
  std::vector<bool> negative;     // [H] sign of w_h
  double magnitude_sum = 0.0;     // sum_h |w_h|
  double norm_sum = 0.0;          // sum_h |w_h| * |q_h|
};

// Heads' queries as columns, all rows' heads one after another.
using Queries = Eigen::Matrix<double, kHeadDim, Eigen::Dynamic>;
using Dots = Eigen::MatrixXd;  // [key][head]

// ---------------------------------------------------------------------------
// How far a score computed in f32 may be from the exact one
// ---------------------------------------------------------------------------
// u = 2^-24, g(n) = n u / (1 - n u). The score is computed as
//   d_h = sum of 128 products q_i k_i, in any order, with or without FMA;
//   s   = (sum_h w_h relu(d_h)) * scale, head sum in any order from +0.
//
// 1. A bf16 has 8 significant bits and an e4m3 has 4: their product has 12 and
//    is exact in f32, unless it underflows, which costs at most 2^-150 each.
//    A sum of 128 terms rounds each at most 127 times, and f32 sums lose
//    nothing to underflow. By Cauchy-Schwarz
//      |d_h - exact| <= g(127) sum |q_i k_i| + (1 + g(127)) 128 * 2^-150
//                    <= g(127) |q_h| |k| + 2^-142 = e_h.
//    relu is a contraction: the same bound holds behind it.
// 2. Each term takes one rounding for the product with w_h (none where FMA
//    merges it into the sum; at most 2^-150 where it underflows) and at most
//    H - 1 in the head sum, whose first addition to +0 is exact. With
//    r_h = relu(exact d_h)
//      |sum - exact| <= sum_h |w_h| e_h + g(H) sum_h |w_h| (r_h + e_h)
//                       + H * 2^-149.
// 3. The scale adds one rounding, or 2^-150 where it underflows: g(H + 1).
//
// Altogether, with W = sum_h |w_h| |q_h|, V = sum_h |w_h|, A = sum_h |w_h| r_h:
//   |score - exact| <= |scale| * ((1 + g(H+1)) (g(127) |k| W + 2^-142 V)
//                                 + g(H+1) A + H * 2^-149) + 2^-149.
// One norm a key and two sums a row: A is gathered beside the score itself.
// A wide query's products round too, g(128) for g(127), and where its scale a
// head is multiplied into w_h that is one rounding more: g(H + 2) for g(H + 1).
// The last factor covers the f64 roundings of the reference and of this bound,
// and its rounding to f32.
double gamma_of(int n) {
  const double u = std::ldexp(1.0, -24);
  return n * u / (1.0 - n * u);
}

class RoundingBound {
 public:
  // `extra`: 1 for wide queries, else 0.
  RoundingBound(int heads, int extra)
      : dot_(gamma_of(kHeadDim - 1 + extra)),
        sum_(gamma_of(heads + 1 + extra)),
        floor_(heads * std::ldexp(1.0, -149)) {}

  double operator()(const RowState& row, double key_norm, double terms,
                    double scale) const {
    const double dots = dot_ * key_norm * row.norm_sum +
                        std::ldexp(1.0, -142) * row.magnitude_sum;
    const double exact =
        std::fabs(scale) * ((1.0 + sum_) * dots + sum_ * terms + floor_) +
        std::ldexp(1.0, -148);
    return exact * (1.0 + std::ldexp(1.0, -20));
  }

 private:
  double dot_;    // g(127), g(128) of wide queries
  double sum_;    // g(H + 1), g(H + 2)
  double floor_;  // H * 2^-149
};

// ---------------------------------------------------------------------------

// Every code's value: a table decodes faster than arithmetic here, and in every
// page layout.
template <Fp8 format>
constexpr std::array<double, 256> kValues = [] {
  std::array<double, 256> values{};
  for (int code = 0; code < 256; ++code)
    values[static_cast<std::size_t>(code)] =
        double{e4m3_to_f32(static_cast<std::uint8_t>(code), format)};
  return values;
}();

template <Fp8 format>
void decode_run(const std::uint8_t* codes, double* values) {
  for (int i = 0; i < 16; ++i) values[i] = kValues<format>[codes[i]];
}

// Runs of 16 dims of one key are contiguous in every page layout.
template <Fp8 format>
void decode_page(std::span<const std::uint8_t> cache, std::int64_t page,
                 PageLayout layout, int first_key, KeyBlock& block) {
  for (int token = 0; token < kPageTokens; ++token) {
    const std::int64_t slot = page * kPageTokens + token;
    const int key = first_key + token;
    for (int dim = 0; dim < kHeadDim; dim += 16)
      decode_run<format>(cache.data() + key_byte(slot, dim, layout),
                         &block.keys(key, dim));
    float scale;
    std::memcpy(&scale, cache.data() + scale_byte(slot), sizeof scale);
    block.scale[static_cast<std::size_t>(key)] = double{scale};
    block.norm[static_cast<std::size_t>(key)] = block.keys.row(key).norm();
  }
}

void decode_pages(std::span<const std::uint8_t> cache,
                  std::span<const std::int32_t> pages, const Geometry& geometry,
                  KeyBlock& block) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::int64_t page = pages[i];
    if (page < 0 ||
        static_cast<std::size_t>(page + 1) * kPageBytes > cache.size())
      throw std::invalid_argument("page " + std::to_string(page) +
                                  " lies outside a cache of " +
                                  std::to_string(cache.size()) + " bytes");
    const int first_key = static_cast<int>(i) * kPageTokens;
    if (geometry.fp8 == Fp8::kE4m3fn)
      decode_page<Fp8::kE4m3fn>(cache, page, geometry.page_layout, first_key,
                                block);
    else
      decode_page<Fp8::kE4m3fnuz>(cache, page, geometry.page_layout, first_key,
                                  block);
  }
}

template <typename Row>
void require_row(const Row& row, const Geometry& geometry) {
  const std::size_t heads = static_cast<std::size_t>(geometry.heads);
  if (row.query.size() != heads * kHeadDim || row.weights.size() != heads)
    throw std::invalid_argument(
        "a row of " + std::to_string(heads) + " heads has " +
        std::to_string(row.query.size()) + " query elements and " +
        std::to_string(row.weights.size()) + " weights");
  if (row.keys < 0 ||
      static_cast<std::size_t>(pages_of(row.keys)) > row.page_table.size())
    throw std::invalid_argument(
        "a row of " + std::to_string(row.keys) + " keys has a page table of " +
        std::to_string(row.page_table.size()) + " entries");
}

double element(std::uint16_t code) { return double{bf16_to_f32(code)}; }
double element(double value) { return value; }

template <typename Row>
RowState row_state(const Row& row, const Queries& queries, int first) {
  RowState state;
  for (std::size_t h = 0; h < row.weights.size(); ++h) {
    const double weight = double{row.weights[h]};
    const double magnitude = std::fabs(weight);
    state.magnitude.push_back(magnitude);
    state.negative.push_back(std::signbit(weight));
    state.magnitude_sum += magnitude;
    state.norm_sum +=
        magnitude * queries.col(first + static_cast<int>(h)).norm();
  }
  return state;
}

// Folds one row's products with a block into scores `first` and on.
void fold(const Dots& dots, int first_head, const RowState& row,
          const KeyBlock& block, std::size_t keys, const RoundingBound& bound,
          std::size_t first, RowScores& out) {
  // Heads of either sign apart: their sum is what the bound and `zero` need.
  std::array<double, kBlockKeys> plus{}, minus{};
  for (std::size_t h = 0; h < row.magnitude.size(); ++h) {
    const double* dot = dots.col(first_head + static_cast<int>(h)).data();
    double* sum = row.negative[h] ? minus.data() : plus.data();
    const double magnitude = row.magnitude[h];
    for (std::size_t j = 0; j < keys; ++j)
      sum[j] = std::fma(magnitude, dot[j] > 0.0 ? dot[j] : 0.0, sum[j]);
  }
  for (std::size_t j = 0; j < keys; ++j) {
    const double scale = block.scale[j];
    const double terms = plus[j] + minus[j];
    const double value = (plus[j] - minus[j]) * scale;
    out.value[first + j] = value;
    out.bound[first + j] =
        static_cast<float>(bound(row, block.norm[j], terms, scale));
    out.zero[first + j] = terms * scale == 0.0 ? 1 : 0;
    out.largest = std::max({out.largest, std::fabs(value),
                            terms * std::fabs(scale) / kCancellation});
  }
}

template <typename Row>
std::vector<RowScores> score_rows(std::span<const Row> rows,
                                  std::span<const std::uint8_t> cache,
                                  const Geometry& geometry, KeyRange range) {
  if (range.begin < 0 || range.begin % kPageTokens != 0)
    throw std::invalid_argument("a key range begins at " +
                                std::to_string(range.begin) +
                                ", inside a page");
  const int heads = geometry.heads;
  const std::size_t count = rows.size();
  Queries queries(kHeadDim, heads * static_cast<int>(count));
  std::vector<RowState> states;
  std::vector<std::int64_t> ends;  // of each row, within the range
  std::vector<RowScores> results(count);
  std::int64_t longest = range.begin;
  for (std::size_t r = 0; r < count; ++r) {
    require_row(rows[r], geometry);
    const int first_head = static_cast<int>(r) * heads;
    std::ranges::transform(rows[r].query, queries.col(first_head).data(),
                           [](auto code) { return element(code); });
    states.push_back(row_state(rows[r], queries, first_head));
    ends.push_back(std::max(range.begin, std::min(range.end, rows[r].keys)));
    longest = std::max(longest, ends[r]);
    const std::size_t n = static_cast<std::size_t>(ends[r] - range.begin);
    results[r].value.resize(n);
    results[r].bound.resize(n);
    results[r].zero.resize(n);
  }

  const RoundingBound bound(heads, std::is_same_v<Row, WideScoreRow> ? 1 : 0);
  const auto block = std::make_unique<KeyBlock>();
  Dots dots(kBlockKeys, heads * static_cast<int>(count));
  for (std::int64_t begin = range.begin; begin < longest; begin += kBlockKeys) {
    const auto keys_of = [&](std::size_t r) {
      return std::clamp<std::int64_t>(ends[r] - begin, 0, kBlockKeys);
    };
    const auto pages_read = [&](std::size_t r) {
      return rows[r].page_table.subspan(
          static_cast<std::size_t>(keys_of(r) > 0 ? begin / kPageTokens : 0),
          static_cast<std::size_t>(pages_of(keys_of(r))));
    };
    std::vector<bool> done(count);
    for (;;) {
      // The unserved row with the most keys here leads; whoever reads a prefix
      // of its pages shares their decoding.
      std::size_t leader = count;
      for (std::size_t r = 0; r < count; ++r)
        if (!done[r] && keys_of(r) > 0 &&
            (leader == count || keys_of(r) > keys_of(leader)))
          leader = r;
      if (leader == count) break;
      const std::span<const std::int32_t> pages = pages_read(leader);
      decode_pages(cache, pages, geometry, *block);
      const auto shares = [&](std::size_t r) {
        const std::span<const std::int32_t> own = pages_read(r);
        return !done[r] && !own.empty() && own.size() <= pages.size() &&
               std::ranges::equal(own, pages.first(own.size()));
      };
      // Neighbours that share are one product.
      for (std::size_t r = 0; r < count; ++r) {
        std::size_t past = r;
        while (past < count && shares(past)) ++past;
        if (past == r) continue;
        const int columns = static_cast<int>(past - r) * heads;
        const Eigen::Index keys = static_cast<Eigen::Index>(keys_of(leader));
        dots.topLeftCorner(keys, columns).noalias() =
            block->keys.topRows(keys) *
            queries.middleCols(static_cast<int>(r) * heads, columns);
        for (std::size_t i = r; i < past; ++i) {
          fold(dots, static_cast<int>(i - r) * heads, states[i], *block,
               static_cast<std::size_t>(keys_of(i)), bound,
               static_cast<std::size_t>(begin - range.begin), results[i]);
          done[i] = true;
        }
        r = past - 1;
      }
    }
  }
  return results;
}

}  // namespace

std::vector<RowScores> scores(std::span<const ScoreRow> rows,
                              std::span<const std::uint8_t> cache,
                              const Geometry& geometry, KeyRange range) {
  return score_rows(rows, cache, geometry, range);
}

std::vector<RowScores> scores(std::span<const WideScoreRow> rows,
                              std::span<const std::uint8_t> cache,
                              const Geometry& geometry, KeyRange range) {
  return score_rows(rows, cache, geometry, range);
}

}  // namespace exact_topk::oracle
