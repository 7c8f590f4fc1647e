// SPDX-License-Identifier: Apache-2.0
#include "dumps/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace exact_topk::dumps {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLengthBytes =
    8;  // the header length in front of the header
constexpr std::uint64_t kHeaderLimitBytes =
    100'000'000;  // the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

// Bits of one element; empty for a dtype that the format does not know.
std::optional<std::uint64_t> dtype_bits(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::uint64_t> kBits[] = {
      {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"BOOL", 8},    {"U8", 8},
      {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"I64", 64},    {"U64", 64},    {"F64", 64},    {"C64", 64},
  };
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return {};
}

// A name as one printable line, whatever is in it.
std::string json_quoted(std::string_view name) {
  return json(name).dump(-1, ' ', false, json::error_handler_t::replace);
}

// The header's JSON, refusing what a plain parse would let pass in silence: a
// key that comes twice.
json parse_header(std::string_view header) {
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) open_objects.pop_back();
    if (event == json::parse_event_t::key &&
        !open_objects.back().insert(value.get<std::string>()).second) {
      throw std::runtime_error(
          fmt::format("the header holds {} twice",
                      json_quoted(value.get_ref<const std::string&>())));
    }
    return true;
  };
  try {
    return json::parse(header, watch);
  } catch (const json::parse_error& error) {
    throw std::runtime_error(
        fmt::format("the header is no JSON (at its byte {})", error.byte));
  } catch (const json::out_of_range&) {
    throw std::runtime_error("the header holds a number that is out of range");
  }
}

// An array of non-negative integers, or nothing.
std::optional<std::vector<std::uint64_t>> unsigned_array(const json& tensor,
                                                         const char* key) {
  const auto found = tensor.find(key);
  if (found == tensor.end() || !found->is_array() ||
      !std::all_of(found->begin(), found->end(), [](const json& item) {
        return item.is_number_unsigned();
      })) {
    return {};
  }
  return found->get<std::vector<std::uint64_t>>();
}

// One tensor of the header, its bytes within `data`. The sentences continue
// "tensor NAME ...".
SafetensorsEntry parse_tensor(const json& tensor,
                              std::span<const std::byte> data) {
  if (!tensor.is_object()) throw std::runtime_error("is no JSON object");
  const auto dtype = tensor.find("dtype");
  if (dtype == tensor.end() || !dtype->is_string())
    throw std::runtime_error("has no dtype");
  SafetensorsEntry entry{
      .dtype = dtype->get<std::string>(), .shape = {}, .bytes = {}};
  const std::optional<std::uint64_t> element_bits = dtype_bits(entry.dtype);
  if (!element_bits)
    throw std::runtime_error(
        fmt::format("has the unknown dtype {}", json_quoted(entry.dtype)));

  std::optional<std::vector<std::uint64_t>> shape =
      unsigned_array(tensor, "shape");
  if (!shape)
    throw std::runtime_error(
        "has a shape that is no array of non-negative integers");
  entry.shape = *std::move(shape);
  const std::string what =
      fmt::format("{} [{}]", entry.dtype, fmt::join(entry.shape, ", "));
  std::uint64_t bits = *element_bits;
  for (const std::uint64_t dimension : entry.shape) {
    if (__builtin_mul_overflow(bits, dimension, &bits))
      throw std::runtime_error(what + " is beyond any file's size");
  }
  if (bits % 8 != 0)
    throw std::runtime_error(
        fmt::format("{} takes {} bits, no whole number of bytes", what, bits));

  const std::optional<std::vector<std::uint64_t>> offsets =
      unsigned_array(tensor, "data_offsets");
  if (!offsets || offsets->size() != 2)
    throw std::runtime_error("has data_offsets that are no [begin, end]");
  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  if (begin > end)
    throw std::runtime_error(
        fmt::format("begins at byte {} and ends before it, at {}", begin, end));
  if (end > data.size()) {
    throw std::runtime_error(
        fmt::format("lies at bytes {} to {} of the data, but the file ends at "
                    "byte {} of it",
                    begin, end, data.size()));
  }
  if (end - begin != bits / 8) {
    throw std::runtime_error(
        fmt::format("{} takes {} bytes, but its offsets span {}", what,
                    bits / 8, end - begin));
  }
  entry.bytes = data.subspan(begin, end - begin);
  return entry;
}

// Every byte of the data belongs to exactly one tensor; empty tensors may lie
// anywhere.
void check_layout(
    const std::map<std::string, SafetensorsEntry, std::less<>>& tensors,
    std::span<const std::byte> data) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> order;
  for (const auto& item : tensors) {
    if (!item.second.bytes.empty()) order.push_back(&item);
  }
  const auto place = [](const auto* item) {
    return std::pair(item->second.bytes.data(),
                     item->second.bytes.data() + item->second.bytes.size());
  };
  std::sort(order.begin(), order.end(),
            [&](const auto* a, const auto* b) { return place(a) < place(b); });
  const std::byte* covered = data.data();
  std::string before = "the header";
  for (const auto* item : order) {
    const auto [begin, end] = place(item);
    const std::string name = fmt::format("tensor {}", json_quoted(item->first));
    if (begin < covered) {
      throw std::runtime_error(fmt::format("{} overlaps {} by {} bytes", name,
                                           before,
                                           std::min(covered, end) - begin));
    }
    if (begin > covered) {
      throw std::runtime_error(
          fmt::format("{} begins {} bytes after the end of {}", name,
                      begin - covered, before));
    }
    covered = end;
    before = name;
  }
  const auto rest = data.data() + data.size() - covered;
  if (rest != 0)
    throw std::runtime_error(
        fmt::format("the last {} bytes of the file belong to no tensor", rest));
}

}  // namespace

Safetensors::Safetensors(const std::filesystem::path& path)
    : path_(path.string()), file_(path) {
  const auto fail = [&](std::string_view fault) {
    throw std::runtime_error(fmt::format("{}: {}", path_, fault));
  };
  std::span<const std::byte> rest = file_.bytes();
  if (rest.size() < kLengthBytes)
    fail(fmt::format("{} bytes hold no header length", rest.size()));
  std::uint64_t length;
  std::memcpy(&length, rest.data(), kLengthBytes);
  rest = rest.subspan(kLengthBytes);
  if (length > rest.size()) {
    fail(fmt::format(
        "the header length {} is beyond the file, which has {} bytes after it",
        length, rest.size()));
  }
  if (length > kHeaderLimitBytes)
    fail(fmt::format("the header of {} bytes is over 100 MB", length));
  const std::span<const std::byte> data = rest.subspan(length);

  try {
    const json header = parse_header(file_.text().substr(kLengthBytes, length));
    if (!header.is_object())
      throw std::runtime_error("the header is no JSON object");
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadataKey) {
        if (!value.is_object())
          throw std::runtime_error(
              "the header's __metadata__ is no JSON object");
        for (const auto& [key, text] : value.items()) {
          if (!text.is_string())
            throw std::runtime_error(
                fmt::format("metadata {} is no string", json_quoted(key)));
          metadata_.emplace(key, text.get<std::string>());
        }
        continue;
      }
      try {
        tensors_.emplace(name, parse_tensor(value, data));
      } catch (const std::runtime_error& fault) {
        throw std::runtime_error(
            fmt::format("tensor {} {}", json_quoted(name), fault.what()));
      }
    }
    check_layout(tensors_, data);
  } catch (const std::runtime_error& fault) {
    fail(fault.what());
  }
}

const SafetensorsEntry& Safetensors::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw std::runtime_error(
        fmt::format("{}: there is no tensor {}", path_, json_quoted(name)));
  return found->second;
}

std::span<const std::byte> Safetensors::typed_bytes(
    std::string_view name, std::span<const std::string_view> dtypes) const {
  const SafetensorsEntry& entry = at(name);
  if (std::find(dtypes.begin(), dtypes.end(), entry.dtype) == dtypes.end()) {
    throw std::runtime_error(fmt::format("{}: tensor {} is {}, not {}", path_,
                                         json_quoted(name), entry.dtype,
                                         fmt::join(dtypes, " or ")));
  }
  return entry.bytes;
}

}  // namespace exact_topk::dumps
