// SPDX-License-Identifier: Apache-2.0
#include "dumps/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace exact_topk::dumps {
namespace {

std::uint64_t load(std::span<const std::byte> bytes) {
  std::uint64_t bits = 0;  // little-endian: short elements fill the low bytes
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

std::string decimal(Dtype dtype, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (dtype) {
    case Dtype::f32:
      return fmt::format("{:.9g}", std::bit_cast<float>(low));
    case Dtype::f64:
      return fmt::format("{:.17g}", std::bit_cast<double>(bits));
    case Dtype::bf16:
      return fmt::format("{:.9g}", std::bit_cast<float>(low << 16));
    case Dtype::i32:
      return fmt::format("{}", static_cast<std::int32_t>(low));
    case Dtype::u8:
      return fmt::format("{}", low);
  }
  throw std::logic_error("no such dtype");
}

// A number that rises with the value: radix key of a floating-point number of
// so many bytes.
std::uint64_t radix_key(std::uint64_t bits, std::size_t bytes) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
  const std::uint64_t all = sign | (sign - 1);
  return (bits & sign) != 0 ? ~bits & all : bits | sign;
}

}  // namespace

std::optional<ElementDifference> first_difference(
    Dtype dtype, std::span<const std::int64_t> shape,
    std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto byte = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  if (byte == a.size()) return {};
  const std::size_t bytes = dtype_bytes(dtype);
  const std::size_t element = byte / bytes;
  const std::uint64_t bits_a = load(a.subspan(element * bytes, bytes));
  const std::uint64_t bits_b = load(b.subspan(element * bytes, bytes));

  ElementDifference difference;
  difference.index.resize(shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d])
    difference.index[d] = rest % shape[d];
  difference.hex_a = fmt::format("0x{:0{}x}", bits_a, 2 * bytes);
  difference.hex_b = fmt::format("0x{:0{}x}", bits_b, 2 * bytes);
  difference.decimal_a = decimal(dtype, bits_a);
  difference.decimal_b = decimal(dtype, bits_b);
  if (dtype == Dtype::f32 || dtype == Dtype::f64 || dtype == Dtype::bf16) {
    const std::uint64_t key_a = radix_key(bits_a, bytes);
    const std::uint64_t key_b = radix_key(bits_b, bytes);
    difference.ulps = std::max(key_a, key_b) - std::min(key_a, key_b);
  }
  return difference;
}

}  // namespace exact_topk::dumps
