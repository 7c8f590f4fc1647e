// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__FMA__) && defined(__AVX2__)
#define EXACT_TOPK_AVX2 1
#include <immintrin.h>
#endif

namespace exact_topk::hip::cpu {
namespace {

using F8 = float __attribute__((vector_size(32)));
using U8 = std::uint32_t __attribute__((vector_size(32)));
using H8 = std::uint16_t __attribute__((vector_size(16)));
using B16 = std::uint8_t __attribute__((vector_size(16)));

constexpr int kKeys = 16;
constexpr int kDims = 128;

template <class Vector>
Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

F8 as_float(U8 bits) { return reinterpret_cast<F8>(bits); }
U8 as_bits(F8 v) { return reinterpret_cast<U8>(v); }

F8 fused(F8 a, F8 b, F8 c) {
#if defined(EXACT_TOPK_AVX2)
  return _mm256_fmadd_ps(a, b, c);
#else
  F8 r;
  for (int i = 0; i < 8; ++i) r[i] = std::fma(a[i], b[i], c[i]);
  return r;
#endif
}

// Unsigned elements in 32 bits each (compilers split the conversion in two
// without being told).
U8 widen(H8 v) {
#if defined(EXACT_TOPK_AVX2)
  return reinterpret_cast<U8>(
      _mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(v)));
#else
  return __builtin_convertvector(v, U8);
#endif
}

// The first 8 bytes.
U8 widen(B16 v) {
#if defined(EXACT_TOPK_AVX2)
  return reinterpret_cast<U8>(
      _mm256_cvtepu8_epi32(reinterpret_cast<__m128i>(v)));
#else
  return __builtin_convertvector(
      __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7), U8);
#endif
}

// x > 0 ? x : +0, so NaN and -0 become +0.
F8 relu(F8 x) { return as_float(as_bits(x) & reinterpret_cast<U8>(x > F8{})); }

// The first 8 codes: as the exponent and mantissa bits of f32, times the power
// of two that makes up for the bias: exact, subnormals too.
F8 decode(B16 codes, bool fnuz) {
  const U8 code = widen(codes);
  const U8 nan =
      reinterpret_cast<U8>(fnuz ? code == 0x80u : (code & 0x7Fu) == 0x7Fu) &
      0x7FC00000u;
  const F8 value = as_float((code & 0x80u) << 24 | (code & 0x7Fu) << 20) *
                   (fnuz ? 0x1p119f : 0x1p120f);
  return as_float(as_bits(value) | nan);
}

// 16 keys in f32, one dim after another.
struct DecodedKeys {
  alignas(32) float value[kDims][kKeys];
};

void decode(const KeyTile& keys, DecodedKeys& out) {
  const bool plain = keys.layout == KeyLayout::plain;
  const std::ptrdiff_t key_stride = plain ? kDims : 16;
  const std::ptrdiff_t group_stride = plain ? 16 : 256;
  for (int group = 0; group < kDims / 16; ++group) {
    const std::uint8_t* const from =
        keys.page + keys.first * kDims + group * group_stride;
    B16 rows[16];
    for (int t = 0; t < 16; ++t) rows[t] = load<B16>(from + t * key_stride);
    // Transposition: a perfect shuffle moves one bit of the row index to the
    // column index; four of them swap the two.
    for (int step = 0; step < 4; ++step) {
      B16 next[16];
      for (int i = 0; i < 8; ++i) {
        next[2 * i] =
            __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18,
                                    3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        next[2 * i + 1] =
            __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26,
                                    11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
      std::copy(next, next + 16, rows);
    }
    for (int d = 0; d < 16; ++d) {
      const F8 low = decode(rows[d], keys.fnuz);
      const F8 high =
          decode(__builtin_shufflevector(rows[d], rows[d], 8, 9, 10, 11, 12, 13,
                                         14, 15, 0, 1, 2, 3, 4, 5, 6, 7),
                 keys.fnuz);
      std::memcpy(out.value[group * 16 + d], &low, sizeof(low));
      std::memcpy(out.value[group * 16 + d] + 8, &high, sizeof(high));
    }
  }
}

struct KeyVector {
  F8 low;   // keys 0..7
  F8 high;  // keys 8..15
};

// Two neighbouring bf16 elements in every lane, apart.
struct Pair {
  F8 even;
  F8 odd;
  explicit Pair(const std::uint16_t* elements) {
    std::uint32_t both;
    std::memcpy(&both, elements, sizeof(both));
    const U8 all = U8{} + both;
    even = as_float(all << 16);
    odd = as_float(all & 0xFFFF0000u);
  }
};

// Scores of the 16 keys. Four heads at a time keep eight chains of
// multiply-adds in flight, enough to hide their latency.
KeyVector score(const DecodedKeys& keys, const ScoreQuery& query, int heads) {
  KeyVector sum = {};
  for (int first = 0; first < heads; first += 4) {
    const std::uint16_t* q[4];  // heads past the last repeat it and are dropped
    for (int i = 0; i < 4; ++i)
      q[i] =
          query.query +
          static_cast<std::ptrdiff_t>(std::min(first + i, heads - 1)) * kDims;
    KeyVector a = {}, b = {}, c = {}, d = {};
    const auto add = [](KeyVector& dot, F8 element, const KeyVector& key) {
      dot.low = fused(element, key.low, dot.low);
      dot.high = fused(element, key.high, dot.high);
    };
    for (int dim = 0; dim < kDims; dim += 2) {
      const Pair qa(q[0] + dim), qb(q[1] + dim), qc(q[2] + dim), qd(q[3] + dim);
      const KeyVector even{load<F8>(keys.value[dim]),
                           load<F8>(keys.value[dim] + 8)};
      add(a, qa.even, even);
      add(b, qb.even, even);
      add(c, qc.even, even);
      add(d, qd.even, even);
      const KeyVector odd{load<F8>(keys.value[dim + 1]),
                          load<F8>(keys.value[dim + 1] + 8)};
      add(a, qa.odd, odd);
      add(b, qb.odd, odd);
      add(c, qc.odd, odd);
      add(d, qd.odd, odd);
    }
    const KeyVector dots[4] = {a, b, c, d};
    for (int i = 0; i < std::min(4, heads - first); ++i) {
      const F8 weight = F8{} + query.weights[first + i];
      sum.low = fused(weight, relu(dots[i].low), sum.low);
      sum.high = fused(weight, relu(dots[i].high), sum.high);
    }
  }
  return sum;
}

F8 load8(const float* from) { return load<F8>(from); }
F8 load8(const std::uint16_t* from) {
  return as_float(widen(load<H8>(from)) << 16);
}

float sum(F8 v) {
  const float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6],
              d = v[3] + v[7];
  return (a + c) + (b + d);
}

// Outputs times Rows dot products of the same length, Outputs weight rows and
// Rows input rows each read once.
template <int Outputs, int Rows, class Weight, class Input>
void dots(const Weight* weights, std::ptrdiff_t weight_stride, const Input* x,
          std::ptrdiff_t x_stride, std::ptrdiff_t inputs,
          float* out /* [Rows][16] */) {
  F8 partial[Outputs][Rows] = {};
  const auto add = [&](const Weight* w, std::ptrdiff_t w_stride, const Input* v,
                       std::ptrdiff_t v_stride) {
    F8 row[Rows];
    for (int r = 0; r < Rows; ++r) row[r] = load8(v + r * v_stride);
    for (int o = 0; o < Outputs; ++o) {
      const F8 weight = load8(w + o * w_stride);
      for (int r = 0; r < Rows; ++r)
        partial[o][r] = fused(weight, row[r], partial[o][r]);
    }
  };
  const std::ptrdiff_t whole = inputs / 8 * 8;
  for (std::ptrdiff_t i = 0; i < whole; i += 8)
    add(weights + i, weight_stride, x + i, x_stride);
  if (whole < inputs) {  // the rest, padded with zeros
    Weight w[Outputs][8] = {};
    Input v[Rows][8] = {};
    for (int o = 0; o < Outputs; ++o)
      std::copy(weights + o * weight_stride + whole,
                weights + o * weight_stride + inputs, w[o]);
    for (int r = 0; r < Rows; ++r)
      std::copy(x + r * x_stride + whole, x + r * x_stride + inputs, v[r]);
    add(w[0], 8, v[0], 8);
  }
  for (int o = 0; o < Outputs; ++o)
    for (int r = 0; r < Rows; ++r) out[r * kKeys + o] = sum(partial[o][r]);
}

// All outputs of Rows rows, eight accumulators at a time.
template <int Rows, class Tile>
void rows_of(const Tile& tile, int row, float* out) {
  constexpr int kOutputs = 8 / Rows;
  const std::ptrdiff_t stride = tile.weight_stride;
  const auto* x = tile.x + row * std::ptrdiff_t{tile.x_stride};
  float* const row_out = out + row * kKeys;
  int o = 0;
  for (; o + kOutputs <= tile.outputs; o += kOutputs)
    dots<kOutputs, Rows>(tile.weights + o * stride, stride, x, tile.x_stride,
                         tile.inputs, row_out + o);
  for (; o < tile.outputs; ++o)
    dots<1, Rows>(tile.weights + o * stride, stride, x, tile.x_stride,
                  tile.inputs, row_out + o);
}

}  // namespace

void compute_score_tile(const Meeting& meeting) {
  const auto& tile = arg_of<ScoreTile>(meeting, 0);
  DecodedKeys keys;
  decode(tile.keys, keys);
  for (int r = 0; r < tile.rows; ++r) {
    const KeyVector scores = score(keys, tile.queries[r], tile.heads);
    float value[kKeys];
    std::memcpy(value, &scores, sizeof(value));
    for (int lane = 0; lane < meeting.width; ++lane)
      arg_of<ScoreTile>(meeting, lane).result[r] = value[lane % kKeys];
  }
}

template <class Weight, class Input>
void compute_front_tile(const Meeting& meeting) {
  using Tile = FrontTile<Weight, Input>;
  const auto& tile = arg_of<Tile>(meeting, 0);
  float out[8 * kKeys] = {};
  int row = 0;
  for (; row + 4 <= tile.rows; row += 4) rows_of<4>(tile, row, out);
  for (; row + 2 <= tile.rows; row += 2) rows_of<2>(tile, row, out);
  for (; row < tile.rows; ++row) rows_of<1>(tile, row, out);
  for (int lane = 0; lane < meeting.width; ++lane)
    for (int r = 0; r < 8; ++r)
      arg_of<Tile>(meeting, lane).result[r] = out[r * kKeys + lane % kKeys];
}

template void compute_front_tile<std::uint16_t, std::uint16_t>(const Meeting&);
template void compute_front_tile<std::uint16_t, float>(const Meeting&);
template void compute_front_tile<float, std::uint16_t>(const Meeting&);
template void compute_front_tile<float, float>(const Meeting&);

}  // namespace exact_topk::hip::cpu
