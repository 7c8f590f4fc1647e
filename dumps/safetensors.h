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

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "dumps/mapped_file.h"

namespace exact_topk::dumps {

struct SafetensorsEntry {
  std::string
      dtype;  // as the file spells it: "F32", "BF16", "F8_E4M3", "I64" ...
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::span<const std::byte>
      bytes;  // the data, at any alignment; valid while the reader lives
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

  // The elements, copied. T is the C++ type of the dtype: float F32, double
  // F64, (u)int8..64 of the same name; uint16_t also reads BF16 and F16,
  // uint8_t also BOOL and the FP8 dtypes, as codes. std::runtime_error where
  // the dtype is another.
  template <typename T>
  std::vector<T> read(std::string_view name) const {
    const std::span<const std::byte> source = typed_bytes(name, dtypes_of<T>());
    std::vector<T> values(source.size() / sizeof(T));
    if (!values.empty())
      std::memcpy(values.data(), source.data(), source.size());
    return values;
  }

 private:
  // The dtypes that read<T>() takes.
  template <typename T>
  static constexpr std::span<const std::string_view> dtypes_of();
  // at(name).bytes, checked to be of one of the dtypes.
  std::span<const std::byte> typed_bytes(
      std::string_view name, std::span<const std::string_view> dtypes) const;

  std::string path_;  // for sentences
  MappedFile file_;   // owns the bytes that entries view
  std::map<std::string, std::string, std::less<>> metadata_;  // "__metadata__"
  std::map<std::string, SafetensorsEntry, std::less<>> tensors_;  // by name
};

namespace detail {
inline constexpr std::string_view kF32[] = {"F32"}, kF64[] = {"F64"},
                                  kI8[] = {"I8"}, kI16[] = {"I16"},
                                  kI32[] = {"I32"}, kI64[] = {"I64"},
                                  kU32[] = {"U32"}, kU64[] = {"U64"},
                                  kU16[] = {"U16", "BF16", "F16"},
                                  kU8[] = {"U8", "BOOL", "F8_E4M3", "F8_E5M2",
                                           "F8_E8M0"};
}  // namespace detail

template <typename T>
constexpr std::span<const std::string_view> Safetensors::dtypes_of() {
  if constexpr (std::is_same_v<T, float>)
    return detail::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return detail::kF64;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return detail::kI8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return detail::kI16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return detail::kI32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return detail::kI64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return detail::kU8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return detail::kU16;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return detail::kU32;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return detail::kU64;
  else
    static_assert(sizeof(T) == 0, "no safetensors dtype has this C++ type");
}

}  // namespace exact_topk::dumps
