// SPDX-License-Identifier: Apache-2.0
#include "dumps/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

namespace exact_topk::dumps {
namespace {

struct DtypeInfo {
  Dtype dtype;             // the row's place in kDtypes
  std::string_view name;   // in .jsonl lines
  std::string_view descr;  // in .npy headers
  std::size_t bytes;       // of one element
};

constexpr DtypeInfo kDtypes[] = {
    {Dtype::f32, "f32", "<f4", 4},   {Dtype::i32, "i32", "<i4", 4},
    {Dtype::f64, "f64", "<f8", 8},   {Dtype::u8, "u8", "|u1", 1},
    {Dtype::bf16, "bf16", "<u2", 2},
};

const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

// A Python tuple: (), (n,), (a, b).
std::string shape_tuple(std::span<const std::int64_t> shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return info(dtype).name; }

Dtype dtype_from_name(std::string_view name) {
  for (const DtypeInfo& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  throw std::runtime_error(
      fmt::format("\"{}\" is no dtype of a dumped tensor", name));
}

std::size_t dtype_bytes(Dtype dtype) { return info(dtype).bytes; }

std::size_t tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
  std::size_t bytes = dtype_bytes(dtype);
  for (const std::int64_t dimension : shape) {
    if (dimension < 0 ||
        __builtin_mul_overflow(bytes, static_cast<std::size_t>(dimension),
                               &bytes)) {
      throw std::runtime_error(
          fmt::format("{} is no shape of a tensor", shape_tuple(shape)));
    }
  }
  return bytes;
}

std::string npy_header(Dtype dtype, std::span<const std::int64_t> shape) {
  constexpr std::size_t kPrefixBytes =
      10;  // magic, version and the u16 header length
  constexpr std::size_t kAlignment = 64;
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                  info(dtype).descr, shape_tuple(shape));
  const std::size_t total =
      (kPrefixBytes + dictionary.size() + 1 + kAlignment - 1) / kAlignment *
      kAlignment;
  const std::size_t length = total - kPrefixBytes;
  if (length > 0xFFFF)
    throw std::runtime_error(fmt::format(
        "a shape of {} dimensions does not fit .npy 1.0", shape.size()));
  dictionary.append(length - dictionary.size() - 1, ' ').push_back('\n');
  std::string header = "\x93NUMPY";
  header += {'\x01', '\x00', static_cast<char>(length & 0xFF),
             static_cast<char>(length >> 8)};
  return header + dictionary;
}

}  // namespace exact_topk::dumps
