// SPDX-License-Identifier: Apache-2.0
#include "harness/capture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "oracle/elements.h"
#include "oracle/entries.h"
#include "oracle/pages.h"
#include "oracle/query_format.h"

namespace exact_topk::harness {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kScoreDtypes = {"F32"sv, "F16"sv, "BF16"sv};
constexpr std::array kIntegerDtypes = {"I32"sv, "I64"sv};
constexpr std::array kQueryDtypes = {"BF16"sv, "F32"sv, "F16"sv, "F8_E4M3"sv};
// What they decode as, in the same order. The dtype F8_E4M3 is e4m3fn,
// whatever the cache is.
constexpr std::array kQueryFormats = {
    oracle::QueryFormat::kBf16, oracle::QueryFormat::kF32,
    oracle::QueryFormat::kF16, oracle::QueryFormat::kE4m3fn};
constexpr std::array kI32 = {"I32"sv};
constexpr std::array kF32 = {"F32"sv};
constexpr std::array kU8 = {"U8"sv};
// The tensors that the f64 reference of the scores needs, all or none.
constexpr std::array kQueryGroup = {"index_q"sv, "head_weights"sv,
                                    "index_cache"sv};

constexpr int64_t kAny = -1;  // of a shape
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostHeads = 65536;

// `count` elements from `first` on, wherever their bytes lie.
template <typename T>
std::vector<T> elements(std::span<const std::byte> bytes, int64_t first,
                        int64_t count) {
  return oracle::elements<T>(
      bytes.subspan(size_t(first) * sizeof(T), size_t(count) * sizeof(T)));
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t dimension : shape)
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        dimension == kAny ? "any" : std::to_string(dimension));
  return '[' + text + ']';
}

}  // namespace

Capture::Capture(const std::string& path) : path_(path), file_(path) {
  read_metadata();
  check_selection();
  check_query_group();
  if (find("index_q") != nullptr) check_query();
  check_pages();
}

void Capture::fail(const std::string& fault) const {
  throw std::runtime_error(fmt::format("{}: {}", path_, fault));
}

const dumps::SafetensorsEntry* Capture::find(std::string_view name) const {
  const auto found = file_.tensors().find(name);
  return found == file_.tensors().end() ? nullptr : &found->second;
}

const dumps::SafetensorsEntry& Capture::require(
    std::string_view name, std::span<const std::string_view> dtypes,
    std::span<const int64_t> shape) const {
  const Entry* entry = find(name);
  if (entry == nullptr) fail(fmt::format("tensor \"{}\" is missing", name));
  if (std::find(dtypes.begin(), dtypes.end(), entry->dtype) == dtypes.end())
    fail(fmt::format("tensor \"{}\" is {}, and must be {}", name, entry->dtype,
                     fmt::join(dtypes, " or ")));
  const bool fits =
      std::equal(shape.begin(), shape.end(), entry->shape.begin(),
                 entry->shape.end(), [](int64_t wanted, uint64_t there) {
                   return wanted == kAny || uint64_t(wanted) == there;
                 });
  if (!fits)
    fail(fmt::format("tensor \"{}\" has the shape [{}], and must have {}", name,
                     fmt::join(entry->shape, ", "), shape_text(shape)));
  return *entry;
}

// The index of the word that the metadata gives; 0, the default, where the key
// is missing.
int Capture::choice(std::string_view key,
                    std::span<const std::string_view> words) const {
  const auto found = file_.metadata().find(key);
  if (found == file_.metadata().end()) return 0;
  const auto word = std::find(words.begin(), words.end(), found->second);
  if (word == words.end())
    fail(fmt::format("metadata \"{}\" is '{}', and must be {}", key,
                     found->second, fmt::join(words, " or ")));
  return int(word - words.begin());
}

void Capture::read_metadata() {
  using oracle::Contract;
  constexpr std::array kEntries = {"position"sv, "slot"sv};
  constexpr std::array kLayouts = {"plain"sv, "preshuffled16"sv};
  constexpr std::array kFp8 = {"e4m3fn"sv, "e4m3fnuz"sv};
  constexpr std::array kContracts = {Contract::kSet,    Contract::kValid,
                                     Contract::kValues, Contract::kPosition,
                                     Contract::kSorted, Contract::kBase};
  std::array<std::string_view, kContracts.size()> contracts;
  std::transform(kContracts.begin(), kContracts.end(), contracts.begin(),
                 oracle::to_string);
  slots_ = choice("entries", kEntries) == 1;
  layout_ = choice("page_layout", kLayouts) == 1
                ? oracle::PageLayout::kPreshuffled16
                : oracle::PageLayout::kPlain;
  fp8_ =
      choice("fp8", kFp8) == 1 ? oracle::Fp8::kE4m3fnuz : oracle::Fp8::kE4m3fn;
  contract_ = kContracts[size_t(choice("contract", contracts))];
}

std::vector<int64_t> Capture::integers(std::string_view name) const {
  const Entry& entry =
      require(name, kIntegerDtypes, std::array<int64_t, 1>{rows_});
  if (entry.dtype == "I64") return elements<int64_t>(entry.bytes, 0, rows_);
  return oracle::converted<int64_t, int32_t>(
      entry.bytes, [](int32_t i) { return int64_t{i}; });
}

void Capture::check_selection() {
  const Entry& scores =
      require("scores", kScoreDtypes, std::array<int64_t, 2>{kAny, kAny});
  // Sizes that memory and positions can hold: the rows are bounded by the bytes
  // of lengths, the columns and k by the type of a position.
  if (scores.shape[0] > uint64_t(kMost))
    fail(fmt::format("tensor \"scores\" has {} rows, and at most {} are judged",
                     scores.shape[0], kMost));
  rows_ = int64_t(scores.shape[0]);
  if (scores.shape[1] > uint64_t(kMost))
    fail(
        fmt::format("tensor \"scores\" has {} columns, and at most {} are "
                    "positions",
                    scores.shape[1], kMost));
  columns_ = int64_t(scores.shape[1]);
  score_format_ = scores.dtype == "F32"   ? oracle::ScoreFormat::kF32
                  : scores.dtype == "F16" ? oracle::ScoreFormat::kF16
                                          : oracle::ScoreFormat::kBf16;

  lengths_ = integers("lengths");
  for (int64_t r = 0; r < rows_; ++r)
    if (keys(r) < 0 || keys(r) > columns_)
      fail(
          fmt::format("tensor \"lengths\" has {} in row {}, and must be from 0 "
                      "to the {} columns of scores",
                      keys(r), r, columns_));
  starts_ = find("starts") != nullptr
                ? integers("starts")
                : std::vector<int64_t>(lengths_.size(), 0);
  for (int64_t r = 0; r < rows_; ++r)
    if (const int64_t start = starts_[size_t(r)];
        start < 0 || start > columns_ - keys(r))
      fail(
          fmt::format("tensor \"starts\" has {} in row {}, whose {} keys then "
                      "leave the {} columns of scores",
                      start, r, keys(r), columns_));

  const Entry& topk =
      require("topk", kIntegerDtypes, std::array<int64_t, 2>{rows_, kAny});
  if (topk.shape[1] < 1 || topk.shape[1] > uint64_t(kMost))
    fail(
        fmt::format("tensor \"topk\" has {} entries a row, and must have from "
                    "1 to {}",
                    topk.shape[1], kMost));
  k_ = int(topk.shape[1]);
}

void Capture::check_query_group() const {
  for (const std::string_view name : kQueryGroup)
    for (const std::string_view other : kQueryGroup)
      if (find(name) != nullptr && find(other) == nullptr)
        fail(fmt::format("tensor \"{}\" is missing, which \"{}\" needs", other,
                         name));
  const Entry* query = find("index_q");
  const bool fp8 = query != nullptr && query->dtype == "F8_E4M3";
  if (fp8 && find("q_scale") == nullptr)
    fail("tensor \"q_scale\" is missing, which an F8_E4M3 \"index_q\" needs");
  if (!fp8 && find("q_scale") != nullptr)
    fail(
        fmt::format("tensor \"q_scale\" goes with an F8_E4M3 \"index_q\", "
                    "which is {}",
                    query != nullptr ? query->dtype : "missing"));
}

void Capture::check_query() {
  using oracle::kHeadDim, oracle::kPageBytes;
  const Entry& query = require("index_q", kQueryDtypes,
                               std::array<int64_t, 3>{rows_, kAny, kHeadDim});
  if (query.shape[1] < 1 || query.shape[1] > uint64_t(kMostHeads))
    fail(
        fmt::format("tensor \"index_q\" has {} heads, and must have from 1 to "
                    "{}",
                    query.shape[1], kMostHeads));
  heads_ = int(query.shape[1]);
  const std::array<int64_t, 2> per_head{rows_, heads_};
  require("head_weights", kF32, per_head);
  if (query.dtype == "F8_E4M3") require("q_scale", kF32, per_head);
  require("index_cache", kU8, std::array<int64_t, 2>{kAny, kPageBytes});
}

// Every page that a row names: inside the cache where there is one, and only
// once. Without a page table position p is at slot p, and the cache must be
// long enough.
void Capture::check_pages() {
  const int64_t cached =
      has_query() ? int64_t(cache().size()) / oracle::kPageBytes : kMost;
  const int64_t needed = oracle::pages_of(longest());
  if (find("page_table") == nullptr) {
    if (slots_)
      fail("tensor \"page_table\" is missing, which slots as entries need");
    if (needed > cached)
      fail(
          fmt::format("tensor \"index_cache\" has {} pages, and a row of {} "
                      "keys without a page table reads {}",
                      cached, longest(), needed));
    return;
  }
  const Entry& table =
      require("page_table", kI32, std::array<int64_t, 2>{rows_, kAny});
  if (table.shape[1] < uint64_t(needed))
    fail(
        fmt::format("tensor \"page_table\" has {} pages a row, and a row of {} "
                    "keys has {}",
                    table.shape[1], longest(), needed));
  table_width_ = int64_t(table.shape[1]);
  for (int64_t r = 0; r < rows_; ++r) {
    const auto fault = oracle::page_fault(pages(r), cached);
    if (!fault) continue;
    if (fault->twice)
      fail(fmt::format("tensor \"page_table\" names page {} twice in row {}",
                       fault->page, r));
    fail(
        fmt::format("tensor \"page_table\" has page {} in row {}, and must be "
                    "from 0 to {}",
                    fault->page, r, cached - 1));
  }
}

oracle::Geometry Capture::geometry() const {
  oracle::Geometry geometry = oracle::glm53();
  geometry.heads = heads_;
  geometry.k = k_;
  geometry.fp8 = fp8_;
  geometry.page_layout = layout_;
  return geometry;
}

int64_t Capture::longest() const {
  return lengths_.empty() ? 0
                          : *std::max_element(lengths_.begin(), lengths_.end());
}

std::vector<float> Capture::scores(int64_t row) const {
  const Entry& scores = file_.at("scores");
  const auto bytes = int64_t(oracle::score_bytes(score_format_));
  const int64_t first = row * columns_ + starts_[size_t(row)];
  return oracle::decode_scores(
      scores.bytes.subspan(size_t(first * bytes), size_t(keys(row) * bytes)),
      score_format_);
}

std::vector<int64_t> Capture::entries(int64_t row) const {
  const Entry& topk = file_.at("topk");
  if (topk.dtype == "I64") return elements<int64_t>(topk.bytes, row * k_, k_);
  return oracle::converted<int64_t, int32_t>(
      topk.bytes.subspan(size_t(row * k_) * sizeof(int32_t),
                         size_t(k_) * sizeof(int32_t)),
      [](int32_t i) { return int64_t{i}; });
}

std::vector<int32_t> Capture::positions(int64_t row) const {
  return slots_
             ? oracle::positions_of_slots(entries(row), pages(row), keys(row))
             : oracle::positions_of_entries(entries(row), keys(row));
}

std::vector<int32_t> Capture::pages(int64_t row) const {
  const int64_t count = oracle::pages_of(keys(row));
  if (table_width_ > 0)
    return elements<int32_t>(file_.bytes("page_table"), row * table_width_,
                             count);
  std::vector<int32_t> pages(static_cast<size_t>(count));
  std::iota(pages.begin(), pages.end(), 0);
  return pages;
}

std::vector<double> Capture::query(int64_t row) const {
  const Entry& query = file_.at("index_q");
  const auto format = kQueryFormats[size_t(
      std::find(kQueryDtypes.begin(), kQueryDtypes.end(), query.dtype) -
      kQueryDtypes.begin())];
  const size_t bytes = query.bytes.size() / size_t(rows_);
  const std::vector<float> scales =
      file_.has("q_scale")
          ? elements<float>(file_.bytes("q_scale"), row * heads_, heads_)
          : std::vector<float>();
  return oracle::decode_query(query.bytes.subspan(size_t(row) * bytes, bytes),
                              format, scales);
}

std::vector<float> Capture::head_weights(int64_t row) const {
  return elements<float>(file_.bytes("head_weights"), row * heads_, heads_);
}

std::span<const uint8_t> Capture::cache() const {
  const std::span<const std::byte> bytes = file_.bytes("index_cache");
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

float Capture::key_scale(int64_t row, int64_t position) const {
  const std::vector<int32_t> table = pages(row);
  float scale;
  std::memcpy(&scale,
              &cache()[oracle::scale_byte(oracle::slot_of(table, position))],
              sizeof scale);
  return scale;
}

}  // namespace exact_topk::harness
