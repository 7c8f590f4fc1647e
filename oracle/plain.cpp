// SPDX-License-Identifier: Apache-2.0
#include "oracle/plain.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace exact_topk::oracle::plain {
namespace {

constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();

// The largest code that is a number.
int largest_code(Fp8 format) { return format == Fp8::kE4m3fn ? 0x7E : 0x7F; }

// Rows of a page's table walked to the bytes of one key.
struct KeyPlace {
  std::size_t page;   // first byte of the page
  std::size_t token;  // within the page
};

std::size_t byte_of(KeyPlace place, std::size_t dim, PageLayout layout) {
  if (layout == PageLayout::kPlain) return place.page + place.token * 128 + dim;
  // [token / 16][dim / 16][token % 16][dim % 16]
  std::size_t byte = place.token / 16;
  byte = byte * 8 + dim / 16;
  byte = byte * 16 + place.token % 16;
  byte = byte * 16 + dim % 16;
  return place.page + byte;
}

}  // namespace

long double bf16_value(std::uint16_t code) {
  const int exponent = code >> 7 & 255, mantissa = code & 127;
  const long double sign = code >> 15 != 0 ? -1.0L : 1.0L;
  if (exponent == 255)
    return mantissa != 0 ? kNan
                         : sign * std::numeric_limits<long double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa / 128.0L, -126);
  return sign * std::ldexp(1.0L + mantissa / 128.0L, exponent - 127);
}

long double e4m3_value(std::uint8_t code, Fp8 format) {
  const int bias = format == Fp8::kE4m3fn ? 7 : 8;
  if (format == Fp8::kE4m3fn ? (code & 127) == 127 : code == 128) return kNan;
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const long double sign = code >= 128 ? -1.0L : 1.0L;
  if (exponent == 0) return sign * std::ldexp(mantissa / 8.0L, 1 - bias);
  return sign * std::ldexp(1.0L + mantissa / 8.0L, exponent - bias);
}

std::uint8_t e4m3_code(long double value, Fp8 format) {
  const bool fn = format == Fp8::kE4m3fn;
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return fn ? (negative ? 0xFF : 0x7F) : 0x80;
  const long double magnitude = std::fabs(value);
  int best = 0;
  for (int code = 1; code <= largest_code(format); ++code) {
    const long double far = std::fabs(
        magnitude - e4m3_value(static_cast<std::uint8_t>(best), format));
    const long double near = std::fabs(
        magnitude - e4m3_value(static_cast<std::uint8_t>(code), format));
    if (near < far || (near == far && code % 2 == 0)) best = code;
  }
  if (std::isinf(value)) best = largest_code(format);
  if (!fn && best == 0) return 0;
  return static_cast<std::uint8_t>(negative ? best + 128 : best);
}

long double key_scale(long double amax, const Geometry& geometry) {
  const long double floored = std::fmax(amax, 1e-4L);
  const long double largest = e4m3_value(
      static_cast<std::uint8_t>(largest_code(geometry.fp8)), geometry.fp8);
  if (geometry.scale == Scale::kF32) return floored / largest;
  long double scale = std::ldexp(1.0L, -60);
  while (scale * largest < floored) scale *= 2;
  return scale;
}

std::vector<long double> rotate(std::span<const long double> head,
                                std::int64_t position,
                                const Geometry& geometry) {
  std::vector<long double> turned(head.begin(), head.end());
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t a = geometry.rope == Rope::kInterleaved ? 2 * i : i;
    const std::size_t b =
        geometry.rope == Rope::kInterleaved ? 2 * i + 1 : i + 32;
    const long double angle =
        static_cast<long double>(position) *
        std::pow(static_cast<long double>(geometry.theta),
                 -2.0L * static_cast<long double>(i) / 64.0L);
    turned[a] = head[a] * std::cos(angle) - head[b] * std::sin(angle);
    turned[b] = head[b] * std::cos(angle) + head[a] * std::sin(angle);
  }
  if (!geometry.hadamard) return turned;
  // Entry (i, j) of the Hadamard matrix is -1 to the number of common bits.
  std::vector<long double> mixed(turned.size(), 0.0L);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    for (std::size_t j = 0; j < turned.size(); ++j)
      mixed[i] += std::popcount(i & j) % 2 == 0 ? turned[j] : -turned[j];
    mixed[i] /= std::sqrt(128.0L);
  }
  return mixed;
}

std::vector<long double> key(std::span<const float> raw,
                             std::span<const float> gamma,
                             std::span<const float> beta, std::int64_t position,
                             const Geometry& geometry) {
  long double mean = 0, var = 0;
  for (const float v : raw) mean += v;
  mean /= 128;
  for (const float v : raw) var += (v - mean) * (v - mean);
  var /= 128;
  std::vector<long double> normed;
  for (std::size_t i = 0; i < raw.size(); ++i)
    normed.push_back(
        (raw[i] - mean) /
            std::sqrt(var + static_cast<long double>(geometry.layer_norm_eps)) *
            gamma[i] +
        beta[i]);
  return rotate(normed, position, geometry);
}

std::vector<long double> scores(std::span<const std::uint16_t> query,
                                std::span<const float> weights,
                                std::span<const std::int32_t> page_table,
                                std::int64_t keys,
                                std::span<const std::uint8_t> cache,
                                const Geometry& geometry) {
  std::vector<long double> out;
  for (std::size_t j = 0; j < static_cast<std::size_t>(keys); ++j) {
    const KeyPlace place{static_cast<std::size_t>(page_table[j / 64]) * 8448,
                         j % 64};
    long double sum = 0;
    for (std::size_t h = 0; h < weights.size(); ++h) {
      long double dot = 0;
      for (std::size_t d = 0; d < 128; ++d)
        dot += bf16_value(query[h * 128 + d]) *
               e4m3_value(cache[byte_of(place, d, geometry.page_layout)],
                          geometry.fp8);
      sum += weights[h] * (dot > 0 ? dot : 0.0L);
    }
    float scale;
    std::memcpy(&scale, &cache[place.page + 8192 + place.token * 4], 4);
    out.push_back(sum * scale);
  }
  return out;
}

}  // namespace exact_topk::oracle::plain
