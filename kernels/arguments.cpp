// SPDX-License-Identifier: Apache-2.0
#include "kernels/arguments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/arms.h"
#include "kernels/backend.h"
#include "kernels/failure.h"
#include "kernels/geometry.h"

namespace exact_topk::kernels {
namespace {

template <class Args>
void check_size(const Args* args, size_t least, const char* name) {
  require(args != nullptr, "{} is a null pointer", name);
  require(args->struct_size >= least,
          "{} has a struct_size of {}; this version needs {}", name,
          args->struct_size, least);
}

template <class Args>
void check_struct(const Args* args, const char* name) {
  check_size(args, sizeof(Args), name);
}

void check_pointer(const void* pointer, const char* name) {
  require(pointer != nullptr, "{} is a null pointer", name);
}

template <class Value>
void check_between(Value value, int64_t least, int64_t largest,
                   const char* name) {
  require(value >= least && value <= largest, "{} is {}; it is from {} to {}",
          name, value, least, largest);
}

void check_multiple(int32_t value, int32_t of, int32_t largest,
                    const char* name) {
  require(value > 0 && value % of == 0 && value <= largest,
          "{} is {}; it is a multiple of {} up to {}", name, value, of,
          largest);
}

void check_eps(float value, const char* name) {
  require(std::isfinite(value) && value >= 0,
          "{} is {}; it is finite and not negative", name, value);
}

void check_geometry(const xtk_geometry& g) {
  check_struct(&g, "geometry");
  constexpr int32_t kLargestWidth = 1 << 14;
  check_multiple(g.hidden, 64, kLargestWidth, "hidden");
  check_multiple(g.q_lora, 64, kLargestWidth, "q_lora");
  check_multiple(g.heads, 8, kLargestHeads, "heads");
  check_between(g.head_dim, kHeadDim, kHeadDim, "head_dim");
  check_between(g.rope_dims, kRopeDims, kRopeDims, "rope_dims");
  check_between(g.page_tokens, kPageKeys, kPageKeys, "page_tokens");
  check_between(g.k, 1, kLargestK, "k");
  check_between(g.rope, XTK_ROPE_INTERLEAVED, XTK_ROPE_HALF_SPLIT, "rope");
  check_between(g.hadamard, 0, 1, "hadamard");
  check_between(g.scale, XTK_SCALE_UE8M0, XTK_SCALE_F32, "scale");
  check_between(g.fp8, XTK_FP8_E4M3FN, XTK_FP8_E4M3FNUZ, "fp8");
  check_between(g.page_layout, XTK_PAGE_PLAIN, XTK_PAGE_PRESHUFFLED16,
                "page_layout");
  check_eps(g.layer_norm_eps, "layer_norm_eps");
  check_eps(g.rms_eps, "rms_eps");
}

void check_arm(const char* arm) {
  check_pointer(arm, "arm");
  if (!has_arm(arm))
    throw Failure(
        XTK_UNSUPPORTED,
        fmt::format(
            "there is no arm '{}'; the arms are {}", arm,
            fmt::join(std::span(kArms).first(std::size(kArms) - 1), ", ")));
}

constexpr int32_t kLargestPages =
    std::numeric_limits<int32_t>::max() / kPageKeys;  // slots are int32

// The page-table entries that a row of n keys reads.
void check_table_row(const int32_t* table, int32_t width, int row, int32_t n,
                     int32_t pages) {
  const int32_t used = n / kPageKeys + (n % kPageKeys != 0);
  require(used <= width,
          "row {} has {} keys on {} pages; its page table has {} columns", row,
          n, used, width);
  for (int32_t i = 0; i < used; ++i) {
    const int32_t page = table[int64_t{row} * width + i];
    require(page >= 0 && page < pages,
            "entry {} of row {}'s page table is {}; pages are 0 to {}", i, row,
            page, pages - 1);
  }
}

}  // namespace

void check_open(const xtk_open_options* options, int devices) {
  check_struct(options, "options");
  const xtk_open_options& o = *options;
  if (devices == 0)
    throw Failure(XTK_NO_DEVICE,
                  fmt::format("no {} device is here", backend::kDevice));
  check_between(o.device, 0, devices - 1, "device");
  check_geometry(o.geometry);
  check_between(o.max_rows, 0, kLargestRows, "max_rows");
  check_between(o.max_partials, 0, 1024, "max_partials");
  check_between(o.layers, 0, 1024, "layers");
  check_between(o.pages, 0, kLargestPages, "pages");
  check_between(o.table_width, 0, kLargestPages, "table_width");
  check_between(o.vocabulary, 0, std::numeric_limits<int32_t>::max(),
                "vocabulary");
  check_between(o.max_keys, 0, kLargestKeys, "max_keys");
  check_between(o.score_stride, o.max_keys, int64_t{1} << 32, "score_stride");
  check_between(o.rope_positions, 0, int64_t{1} << 32, "rope_positions");
  check_between(o.list_entries, 0, std::numeric_limits<int32_t>::max(),
                "list_entries");
  require(o.wave_size == 0 || ((o.wave_size == 32 || o.wave_size == 64) &&
                               (backend::kWaveSizes & o.wave_size) != 0),
          "wave_size is {}; {} does not offer it", o.wave_size, backend::kName);
  check_between(o.blocks, 0, 1 << 16, "blocks");
}

void check_launch(const xtk_launch_args* args,
                  const xtk_open_options& options) {
  check_struct(args, "args");
  check_arm(args->arm);
  check_between(args->layer, 0, options.layers - 1, "layer");
  check_between(args->kind, XTK_KIND_INDEX, XTK_KIND_EMBED, "kind");
  check_between(args->rows, 1, options.max_rows, "rows");
  switch (args->kind) {
    case XTK_KIND_INDEX:
      check_between(args->partials, 1, options.max_partials, "partials");
      break;
    case XTK_KIND_DENSE:
      require(options.max_partials >= 1,
              "kind dense needs room for one partial sum; max_partials is 0");
      check_between(args->partials, 1, 1, "partials");
      break;
    default:
      require(options.vocabulary > 0,
              "kind embed needs an embedding table; vocabulary is 0");
      check_between(args->partials, 0, 0, "partials");
  }
}

void check_select(const xtk_select_args* args) {
  check_struct(args, "args");
  const xtk_select_args& a = *args;
  check_arm(a.arm);
  check_between(a.rows, 1, kLargestRows, "rows");
  check_between(a.k, 1, kLargestK, "k");
  check_between(a.scores_count, 0, int64_t{1} << 40, "scores_count");
  check_between(a.list_entries, 0, std::numeric_limits<int32_t>::max(),
                "list_entries");
  if (a.scores_count > 0) check_pointer(a.scores, "scores");
  if (a.list_entries > 0) check_pointer(a.list, "list");
  check_pointer(a.row_start, "row_start");
  check_pointer(a.lengths, "lengths");
  check_pointer(a.indptr, "indptr");
  if (a.page_table != nullptr)
    check_between(a.table_width, 0, kLargestPages, "table_width");
  for (int row = 0; row < a.rows; ++row) {
    const int32_t n = a.lengths[row];
    require(n >= 0 && n <= kLargestKeys,
            "row {} has {} keys; it has from 0 to {}", row, n, kLargestKeys);
    const int64_t start = a.row_start[row];
    require(
        start >= 0 && start <= a.scores_count && n <= a.scores_count - start,
        "row {} takes {} scores from {}; there are {}", row, n, start,
        a.scores_count);
    const int32_t entries = std::min(n, a.k);
    require(a.indptr[row] >= 0 &&
                int64_t{a.indptr[row]} + entries <= a.list_entries,
            "row {} writes {} entries at {}; the list has {}", row, entries,
            a.indptr[row], a.list_entries);
    if (a.page_table != nullptr)
      check_table_row(a.page_table, a.table_width, row, n, kLargestPages);
  }
}

void check_score(const xtk_score_args* args) {
  check_struct(args, "args");
  const xtk_score_args& a = *args;
  check_arm(a.arm);
  check_between(a.rows, 1, kLargestRows, "rows");
  check_pointer(a.index_query, "index_query");
  check_pointer(a.weights, "weights");
  check_pointer(a.cache, "cache");
  check_pointer(a.page_table, "page_table");
  check_pointer(a.lengths, "lengths");
  check_pointer(a.scores, "scores");
  check_between(a.pages, 1, kLargestPages, "pages");
  check_between(a.table_width, 1, kLargestPages, "table_width");
  check_between(a.score_stride, 0, int64_t{1} << 32, "score_stride");
  const int64_t largest = std::min(kLargestKeys, a.score_stride);
  for (int row = 0; row < a.rows; ++row) {
    require(a.lengths[row] >= 0 && a.lengths[row] <= largest,
            "row {} has {} keys; it has from 0 to {}", row, a.lengths[row],
            largest);
    check_table_row(a.page_table, a.table_width, row, a.lengths[row], a.pages);
  }
}

xtk_replay_args check_replay(const xtk_replay_args* args) {
  // `calls` came later: a caller may not know it.
  constexpr size_t kLeast = offsetof(xtk_replay_args, calls);
  check_size(args, kLeast, "args");
  xtk_replay_args whole{};
  std::memcpy(&whole, args, std::min<size_t>(args->struct_size, sizeof whole));
  check_between(whole.replays, 1, 1'000'000, "replays");
  check_between(whole.cold, 0, 1, "cold");
  check_between(whole.stage, XTK_STAGE_LAUNCH, XTK_STAGE_SELECT, "stage");
  check_between(whole.calls, 0, kMostCalls, "calls");
  whole.calls = std::max(whole.calls, 1);
  return whole;
}

}  // namespace exact_topk::kernels
