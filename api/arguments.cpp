// SPDX-License-Identifier: Apache-2.0
#include "api/arguments.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <stdexcept>

#include "oracle/elements.h"
#include "oracle/entries.h"
#include "oracle/pages.h"
#include "oracle/query_format.h"

namespace exact_topk::api {
namespace {

constexpr std::int64_t kMostKeys = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kMostHeads = 65536;

// `value` is from `least` to `most`.
void require_range(std::int64_t value, std::int64_t least, std::int64_t most,
                   const char* name) {
  require(value >= least && value <= most,
          fmt::format("{} is {}; it takes {} to {}", name, value, least, most));
}

void require_dtype(bool holds, const char* name, std::int32_t value,
                   const char* taken) {
  require(holds, fmt::format("{} is {}; it takes {}", name, value, taken));
}

std::span<const std::byte> bytes_of(const void* data, std::size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

// The pages of a row of `keys` keys by the caller's table; 0, 1, 2 ... without
// one.
std::vector<std::int32_t> pages_of(const std::int32_t* table,
                                   std::int64_t entries, std::int64_t keys,
                                   std::int64_t cache_pages,
                                   const std::string& structure) {
  const std::int64_t needed = oracle::pages_of(keys);
  if (table == nullptr) {
    require(needed <= cache_pages,
            fmt::format("{}.cache_pages is {}, and {} keys without a page "
                        "table lie on {} pages",
                        structure, cache_pages, keys, needed));
    std::vector<std::int32_t> pages(static_cast<std::size_t>(needed));
    std::iota(pages.begin(), pages.end(), 0);
    return pages;
  }
  require(entries >= needed,
          fmt::format("{}.pages is {}, and {} keys lie on {} pages", structure,
                      entries, keys, needed));
  std::vector<std::int32_t> pages(table, table + needed);
  if (const auto fault = oracle::page_fault(pages, cache_pages)) {
    require(!fault->twice, fmt::format("{}.page_table names page {} twice",
                                       structure, fault->page));
    throw std::invalid_argument(
        fmt::format("{}.page_table has page {}; it takes 0 to {}", structure,
                    fault->page, cache_pages - 1));
  }
  return pages;
}

oracle::QueryFormat query_format(std::int32_t dtype) {
  switch (dtype) {
    case EXACT_TOPK_BF16:
      return oracle::QueryFormat::kBf16;
    case EXACT_TOPK_F32:
      return oracle::QueryFormat::kF32;
    case EXACT_TOPK_F16:
      return oracle::QueryFormat::kF16;
    case EXACT_TOPK_F8_E4M3:
      return oracle::QueryFormat::kE4m3fn;
    default:
      throw std::invalid_argument(
          fmt::format("source.query_dtype is {}; it takes EXACT_TOPK_BF16, "
                      "F32, F16 or F8_E4M3",
                      dtype));
  }
}

oracle::ScoreFormat score_format(std::int32_t dtype) {
  switch (dtype) {
    case EXACT_TOPK_F32:
      return oracle::ScoreFormat::kF32;
    case EXACT_TOPK_F16:
      return oracle::ScoreFormat::kF16;
    case EXACT_TOPK_BF16:
      return oracle::ScoreFormat::kBf16;
    default:
      throw std::invalid_argument(fmt::format(
          "scores.dtype is {}; it takes EXACT_TOPK_F32, F16 or BF16", dtype));
  }
}

}  // namespace

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

void require_pointer(const void* pointer, const char* name) {
  require(pointer != nullptr, fmt::format("{} is NULL", name));
}

void require_size(std::uint32_t given, std::size_t known, const char* name) {
  require(given == known,
          fmt::format("{}.struct_size is {}; this library knows {}", name,
                      given, known));
}

void require_bound(double bound) {
  require(bound >= 0.0 && bound < 0.5,
          fmt::format("bound is {}; it takes 0 to less than 0.5", bound));
}

void require_k(std::int32_t k, const char* name) {
  require_range(k, 1, std::numeric_limits<std::int32_t>::max(), name);
}

Row row_of(const exact_topk_scores* scores) {
  require_struct(scores, "scores");
  Row row;
  row.format = score_format(scores->dtype);
  require_range(scores->n, 0, kMostKeys, "scores.n");
  if (scores->n > 0) require_pointer(scores->data, "scores.data");
  row.scores = oracle::decode_scores(
      bytes_of(scores->data, static_cast<std::size_t>(scores->n) *
                                 oracle::score_bytes(row.format)),
      row.format);
  return row;
}

List list_of(const exact_topk_list* list, std::int64_t keys) {
  require_struct(list, "list");
  require_dtype(list->dtype == EXACT_TOPK_I32 || list->dtype == EXACT_TOPK_I64,
                "list.dtype", list->dtype, "EXACT_TOPK_I32 or I64");
  require_range(list->count, 0, kMostKeys, "list.count");
  if (list->count > 0) require_pointer(list->entries, "list.entries");
  require_k(list->k, "list.k");
  require(
      list->contract >= EXACT_TOPK_VALID && list->contract <= EXACT_TOPK_BASE,
      fmt::format("list.contract is {}; it takes EXACT_TOPK_VALID, VALUES, "
                  "SET, POSITION, SORTED or BASE",
                  list->contract));
  require_range(list->nan_last, 0, 1, "list.nan_last");
  require_range(list->zeros_equal, 0, 1, "list.zeros_equal");
  require(list->contract != EXACT_TOPK_BASE ||
              (list->nan_last == 0 && list->zeros_equal == 0),
          "list.contract is EXACT_TOPK_BASE, which knows neither nan_last nor "
          "zeros_equal");

  List made;
  made.k = list->k;
  made.contract =
      static_cast<oracle::Contract>(list->contract - EXACT_TOPK_VALID);
  made.rules = {list->nan_last != 0, list->zeros_equal != 0};
  const std::size_t count = static_cast<std::size_t>(list->count);
  made.entries =
      list->dtype == EXACT_TOPK_I64
          ? oracle::elements<std::int64_t>(bytes_of(list->entries, count * 8))
          : oracle::converted<std::int64_t, std::int32_t>(
                bytes_of(list->entries, count * 4),
                [](std::int32_t entry) { return std::int64_t{entry}; });
  made.positions =
      list->page_table == nullptr
          ? oracle::positions_of_entries(made.entries, keys)
          : oracle::positions_of_slots(made.entries,
                                       pages_of(list->page_table, list->pages,
                                                keys, kMostKeys, "list"),
                                       keys);
  return made;
}

oracle::RowScores reference_of(const exact_topk_source* source) {
  require_struct(source, "source");
  const oracle::QueryFormat format = query_format(source->query_dtype);
  require_range(source->heads, 1, kMostHeads, "source.heads");
  require_range(source->keys, 0, kMostKeys, "source.keys");
  require_range(source->cache_pages, 0, kMostKeys, "source.cache_pages");
  require_range(source->cache_fp8, 0, 1, "source.cache_fp8");
  require_range(source->page_layout, 0, 1, "source.page_layout");
  require_range(source->reserved, 0, 0, "source.reserved");
  require_pointer(source->query, "source.query");
  require_pointer(source->weights, "source.weights");
  const bool fp8 = source->query_dtype == EXACT_TOPK_F8_E4M3;
  require(fp8 == (source->q_scale != nullptr),
          fp8 ? "source.q_scale is NULL, which an F8_E4M3 query needs"
              : "source.q_scale is given; it goes with an F8_E4M3 query");
  if (source->cache_pages > 0) require_pointer(source->cache, "source.cache");

  const std::size_t heads = static_cast<std::size_t>(source->heads);
  oracle::Geometry geometry;
  geometry.heads = source->heads;
  geometry.fp8 = static_cast<oracle::Fp8>(source->cache_fp8);
  geometry.page_layout = static_cast<oracle::PageLayout>(source->page_layout);
  const std::vector<double> query = oracle::decode_query(
      bytes_of(source->query,
               heads * oracle::kHeadDim * oracle::query_bytes(format)),
      format, std::span(source->q_scale, fp8 ? heads : 0));
  const std::vector<std::int32_t> pages =
      pages_of(source->page_table, source->pages, source->keys,
               source->cache_pages, "source");
  const oracle::WideScoreRow row{query, std::span(source->weights, heads),
                                 pages, source->keys};
  const std::span cache(
      static_cast<const std::uint8_t*>(source->cache),
      static_cast<std::size_t>(source->cache_pages) * oracle::kPageBytes);
  return std::move(oracle::scores(std::span(&row, 1), cache, geometry).front());
}

}  // namespace exact_topk::api
