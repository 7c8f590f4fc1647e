// SPDX-License-Identifier: Apache-2.0
//
// A reader of safetensors files: 8 bytes of header length, a JSON header,
// tensor bytes. The file is mapped and the whole header is validated when it is
// opened, so that every view handed out afterwards is good.
//
// A malformed file is one std::runtime_error sentence naming the file and,
// where there is one, the tensor and the fault: truncated or oversized header,
// header that is no JSON object, duplicate names, unknown dtype, shape that is
// no array of non-negative integers or overflows, offsets that are no [begin,
// end] or lie outside the file, sizes that do not match dtype x shape,
// overlapping tensors, and bytes that belong to no tensor (the format forbids
// holes).
//
// Tensor data may start at any byte: read<T>() copies out, bytes() gives the
// raw, possibly unaligned bytes. Nothing is converted, and nothing is said
// about what a tensor should be called: that is the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dumps/mapped_file.h"

namespace exact_topk::dumps {

// The dtypes that Safetensors::read<T>() takes: those whose elements a T holds.
template <typename T>
inline constexpr std::array<std::string_view, 0> kDtypesOf{};
template <>
inline constexpr std::array<std::string_view, 1> kDtypesOf<float>{"F32"};
template <>
inline constexpr std::array<std::string_view, 1> kDtypesOf<double>{"F64"};
template <>
inline constexpr std::array<std::string_view, 1> kDtypesOf<std::int32_t>{"I32"};
template <>
inline constexpr std::array<std::string_view, 1> kDtypesOf<std::int64_t>{"I64"};
template <>
inline constexpr std::array<std::string_view, 3> kDtypesOf<std::uint16_t>{
    "U16", "BF16", "F16"};
template <>
inline constexpr std::array<std::string_view, 4> kDtypesOf<std::uint8_t>{
    "U8", "BOOL", "F8_E4M3", "F8_E5M2"};

struct SafetensorsEntry {
  std::string dtype;  // as the file spells it: "F32", "F8_E4M3", "I64" ...
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::span<const std::byte> bytes;  // at any alignment, while the reader lives
};

class Safetensors {
 public:
  explicit Safetensors(const std::filesystem::path& path);

  // Strings of "__metadata__"; empty where the file has none.
  const std::map<std::string, std::string, std::less<>>& metadata() const {
    return metadata_;
  }
  // Every tensor, by name.
  const std::map<std::string, SafetensorsEntry, std::less<>>& tensors() const {
    return tensors_;
  }

  bool has(std::string_view name) const {
    return tensors_.find(name) != tensors_.end();
  }
  // std::runtime_error naming the tensor where there is none.
  const SafetensorsEntry& at(std::string_view name) const;
  const std::vector<std::uint64_t>& shape(std::string_view name) const {
    return at(name).shape;
  }
  std::span<const std::byte> bytes(std::string_view name) const {
    return at(name).bytes;
  }

  // The elements, copied: float reads F32, double F64, int32_t I32, int64_t
  // I64, and as codes uint16_t U16, BF16 and F16, uint8_t U8, BOOL and FP8.
  // std::runtime_error where the tensor's dtype is another.
  template <typename T>
  std::vector<T> read(std::string_view name) const {
    static_assert(!kDtypesOf<T>.empty(), "no dtype is read as this type");
    const std::span<const std::byte> source = typed_bytes(name, kDtypesOf<T>);
    std::vector<T> values(source.size() / sizeof(T));
    if (!source.empty()) {
      std::memcpy(values.data(), source.data(), source.size());
    }
    return values;
  }

 private:
  // at(name).bytes, checked to be of one of the dtypes.
  std::span<const std::byte> typed_bytes(
      std::string_view name, std::span<const std::string_view> dtypes) const;

  std::string path_;  // for sentences
  MappedFile file_;   // owns the bytes that entries view
  std::map<std::string, std::string, std::less<>> metadata_;  // "__metadata__"
  std::map<std::string, SafetensorsEntry, std::less<>> tensors_;  // by name
};

}  // namespace exact_topk::dumps
