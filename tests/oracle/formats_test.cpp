// SPDX-License-Identifier: Apache-2.0
#include "oracle/formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "oracle/plain.h"

namespace exact_topk::oracle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Fp8 kFormats[] = {Fp8::kE4m3fn, Fp8::kE4m3fnuz};

// Same value and sign; NaN equals NaN.
testing::AssertionResult same(float actual, long double expected) {
  if (std::isnan(actual) && std::isnan(expected))
    return testing::AssertionSuccess();
  if (actual == expected && std::signbit(actual) == std::signbit(expected))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << actual << " is not " << expected;
}

std::uint16_t u16(int code) { return static_cast<std::uint16_t>(code); }
std::uint8_t u8(int code) { return static_cast<std::uint8_t>(code); }

TEST(Bf16, DecodesEveryCode) {
  for (int code = 0; code < 65536; ++code)
    ASSERT_TRUE(same(bf16_to_f32(u16(code)), plain::bf16_value(u16(code))))
        << code;
}

TEST(Bf16, EveryCodeSurvivesTheRoundTrip) {
  for (int code = 0; code < 65536; ++code) {
    const float value = bf16_to_f32(u16(code));
    if (std::isnan(value)) {
      const std::uint16_t back = f32_to_bf16(value);
      ASSERT_TRUE(std::isnan(bf16_to_f32(back))) << code;
      ASSERT_EQ(back >> 15, code >> 15) << code;
    } else {
      ASSERT_EQ(f32_to_bf16(value), code);
    }
  }
}

// A signalling NaN whose payload lies in the dropped half must not become inf.
TEST(Bf16, NanWithALowPayloadStaysNan) {
  EXPECT_TRUE(
      std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(
      std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xFF80FFFFu)))));
}

// Between neighbours c and c+1: just under the midpoint c, at it the even one,
// just over it c+1. The neighbour of the largest number is infinity.
TEST(Bf16, RoundsToNearestEven) {
  for (int code = 0; code < 0x7F80; ++code) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const std::uint32_t middle = (std::uint32_t(code) << 16 | 0x8000u) | sign;
      const int top = sign != 0 ? 0x8000 : 0;
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), code | top);
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)),
                (code + code % 2) | top);
      ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)),
                (code + 1) | top);
    }
  }
}

TEST(E4m3, DecodesEveryCode) {
  for (const Fp8 format : kFormats)
    for (int code = 0; code < 256; ++code)
      EXPECT_TRUE(same(e4m3_to_f32(u8(code), format),
                       plain::e4m3_value(u8(code), format)))
          << code;
}

TEST(E4m3, LandmarksByTheirDefinition) {
  EXPECT_EQ(e4m3_to_f32(0x7E, Fp8::kE4m3fn), 448.0f);
  EXPECT_EQ(e4m3_to_f32(0x01, Fp8::kE4m3fn), 0x1p-9f);
  EXPECT_EQ(e4m3_to_f32(0x08, Fp8::kE4m3fn), 0x1p-6f);
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7F, Fp8::kE4m3fn)));
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0xFF, Fp8::kE4m3fn)));
  EXPECT_TRUE(same(e4m3_to_f32(0x80, Fp8::kE4m3fn), -0.0L));
  EXPECT_EQ(e4m3_to_f32(0x7F, Fp8::kE4m3fnuz), 240.0f);
  EXPECT_EQ(e4m3_to_f32(0x01, Fp8::kE4m3fnuz), 0x1p-10f);
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x80, Fp8::kE4m3fnuz)));
}

TEST(E4m3, EveryNumberSurvivesTheRoundTrip) {
  for (const Fp8 format : kFormats) {
    for (int code = 0; code < 256; ++code) {
      const float value = e4m3_to_f32(u8(code), format);
      if (!std::isnan(value)) {
        EXPECT_EQ(f32_to_e4m3(value, format), code);
      }
    }
  }
}

// Every midpoint between neighbours, and the floats next to it on both sides.
TEST(E4m3, RoundsToNearestEven) {
  for (const Fp8 format : kFormats) {
    const int largest = format == Fp8::kE4m3fn ? 0x7E : 0x7F;
    for (int code = 0; code < largest; ++code) {
      const float middle =
          (e4m3_to_f32(u8(code), format) + e4m3_to_f32(u8(code + 1), format)) /
          2;
      EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0f), format), code);
      EXPECT_EQ(f32_to_e4m3(middle, format), code + code % 2);
      EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, kInfinity), format),
                code + 1);
      const auto negative = [&](int c) {
        return format == Fp8::kE4m3fnuz && c == 0 ? 0 : 0x80 | c;
      };
      EXPECT_EQ(f32_to_e4m3(-std::nextafter(middle, 0.0f), format),
                negative(code));
      EXPECT_EQ(f32_to_e4m3(-middle, format), negative(code + code % 2));
    }
  }
}

TEST(E4m3, SaturatesWithTheSign) {
  const float beyond[] = {448.0f, 449.0f, 464.0f, 465.0f, 1e30f, kInfinity};
  for (const float value : beyond) {
    EXPECT_EQ(f32_to_e4m3(value, Fp8::kE4m3fn), 0x7E) << value;
    EXPECT_EQ(f32_to_e4m3(-value, Fp8::kE4m3fn), 0xFE) << value;
    EXPECT_EQ(f32_to_e4m3(value, Fp8::kE4m3fnuz), 0x7F) << value;
    EXPECT_EQ(f32_to_e4m3(-value, Fp8::kE4m3fnuz), 0xFF) << value;
  }
}

TEST(E4m3, ZeroAndNan) {
  EXPECT_EQ(f32_to_e4m3(0.0f, Fp8::kE4m3fn), 0x00);
  EXPECT_EQ(f32_to_e4m3(-0.0f, Fp8::kE4m3fn), 0x80);
  EXPECT_EQ(f32_to_e4m3(-0x1p-149f, Fp8::kE4m3fn), 0x80);
  EXPECT_EQ(f32_to_e4m3(-0.0f, Fp8::kE4m3fnuz), 0x00);
  EXPECT_EQ(f32_to_e4m3(-0x1p-149f, Fp8::kE4m3fnuz), 0x00);
  EXPECT_EQ(f32_to_e4m3(std::nanf(""), Fp8::kE4m3fn), 0x7F);
  EXPECT_EQ(f32_to_e4m3(-std::nanf(""), Fp8::kE4m3fn), 0xFF);
  EXPECT_EQ(f32_to_e4m3(-std::nanf(""), Fp8::kE4m3fnuz), 0x80);
}

// A sweep over all exponents that matter, against a search over all codes.
TEST(E4m3, AgreesWithASearchOverAllCodes) {
  for (const Fp8 format : kFormats) {
    for (std::uint32_t bits = 0x38000000u; bits < 0x44800000u; bits += 48611u) {
      const float value = std::bit_cast<float>(bits);
      ASSERT_EQ(f32_to_e4m3(value, format), plain::e4m3_code(value, format))
          << value;
      ASSERT_EQ(f32_to_e4m3(-value, format), plain::e4m3_code(-value, format))
          << value;
    }
  }
}

// amax = max * 2^n is the case that ceil(log2(s)) in floats gets wrong.
TEST(KeyScale, IsExactAtPowersOfTwoAndDoublesOneUlpAbove) {
  for (const Fp8 format : kFormats) {
    for (int n = -20; n <= 40; ++n) {
      const float amax = std::ldexp(e4m3_max(format), n);
      EXPECT_EQ(key_scale(amax, Scale::kUe8m0, format), std::ldexp(1.0f, n));
      EXPECT_EQ(key_scale(std::nextafter(amax, 0.0f), Scale::kUe8m0, format),
                std::ldexp(1.0f, n));
    }
  }
  // The float after 448 is 448 * (1 + 2^-22 / 7 * 4): its quotient is no power.
  EXPECT_EQ(
      key_scale(std::nextafter(448.0f, 1e9f), Scale::kUe8m0, Fp8::kE4m3fn),
      2.0f);
  EXPECT_EQ(
      key_scale(std::nextafter(240.0f, 1e9f), Scale::kUe8m0, Fp8::kE4m3fnuz),
      2.0f);
}

TEST(KeyScale, FloorTakesItsScale) {
  // 1e-4 / 448 = 2.23e-7 lies between 2^-23 and 2^-22; / 240 = 4.17e-7 below
  // 2^-21.
  EXPECT_EQ(key_scale(1e-4f, Scale::kUe8m0, Fp8::kE4m3fn), 0x1p-22f);
  EXPECT_EQ(key_scale(1e-4f, Scale::kUe8m0, Fp8::kE4m3fnuz), 0x1p-21f);
  EXPECT_EQ(key_scale(1e-4f, Scale::kF32, Fp8::kE4m3fn), 1e-4f / 448.0f);
}

// The formula where the floor does not hold it back: a subnormal quotient has
// exponent field 0, so that any mantissa gives 2^-126, and none 2^-127.
TEST(KeyScale, SubnormalQuotients) {
  EXPECT_EQ(key_scale(448.0f * 0x1p-127f, Scale::kUe8m0, Fp8::kE4m3fn),
            0x1p-126f);
  EXPECT_EQ(key_scale(0.0f, Scale::kUe8m0, Fp8::kE4m3fn), 0x1p-127f);
  EXPECT_EQ(key_scale(240.0f, Scale::kF32, Fp8::kE4m3fnuz), 1.0f);
}

}  // namespace
}  // namespace exact_topk::oracle
