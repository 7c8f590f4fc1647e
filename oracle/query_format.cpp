// SPDX-License-Identifier: Apache-2.0
#include "oracle/query_format.h"

#include <cstdint>

#include "oracle/elements.h"
#include "oracle/formats.h"
#include "oracle/geometry.h"

namespace exact_topk::oracle {
namespace {

std::vector<double> widen(std::span<const std::byte> bytes,
                          QueryFormat format) {
  switch (format) {
    case QueryFormat::kBf16:
      return converted<double, std::uint16_t>(bytes, bf16_to_f32);
    case QueryFormat::kF32:
      return converted<double, float>(bytes, [](float x) { return double{x}; });
    case QueryFormat::kF16:
      return converted<double, std::uint16_t>(bytes, f16_to_f32);
    case QueryFormat::kE4m3fn:
      return converted<double, std::uint8_t>(bytes, [](std::uint8_t code) {
        return double{e4m3_to_f32(code, Fp8::kE4m3fn)};
      });
  }
  return {};
}

}  // namespace

std::size_t query_bytes(QueryFormat format) {
  switch (format) {
    case QueryFormat::kF32:
      return sizeof(float);
    case QueryFormat::kE4m3fn:
      return sizeof(std::uint8_t);
    case QueryFormat::kBf16:
    case QueryFormat::kF16:
      break;
  }
  return sizeof(std::uint16_t);
}

std::vector<double> decode_query(std::span<const std::byte> bytes,
                                 QueryFormat format,
                                 std::span<const float> scales) {
  std::vector<double> values = widen(bytes, format);
  if (!scales.empty())
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= double{scales[i / kHeadDim]};
  return values;
}

}  // namespace exact_topk::oracle
