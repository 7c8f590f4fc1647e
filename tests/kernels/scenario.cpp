// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "oracle/formats.h"
#include "oracle/front.h"
#include "oracle/pages.h"
#include "oracle/scores.h"
#include "oracle/select.h"
#include "oracle/stages.h"

namespace exact_topk::tests {
namespace {

constexpr int kListGap = 3;  // guard entries between two rows' lists

int64_t pages_of(int64_t keys) { return (keys + 63) / 64; }

oracle::Geometry translated(const xtk_geometry& g) {
  return {.name = "test",
          .hidden = g.hidden,
          .q_lora = g.q_lora,
          .heads = g.heads,
          .k = g.k,
          .theta = 8e6,
          .rope = g.rope == XTK_ROPE_INTERLEAVED ? oracle::Rope::kInterleaved
                                                 : oracle::Rope::kHalfSplit,
          .hadamard = g.hadamard == 1,
          .scale = g.scale == XTK_SCALE_UE8M0 ? oracle::Scale::kUe8m0
                                              : oracle::Scale::kF32,
          .fp8 = g.fp8 == XTK_FP8_E4M3FN ? oracle::Fp8::kE4m3fn
                                         : oracle::Fp8::kE4m3fnuz,
          .page_layout = g.page_layout == XTK_PAGE_PLAIN
                             ? oracle::PageLayout::kPlain
                             : oracle::PageLayout::kPreshuffled16,
          .layer_norm_eps = g.layer_norm_eps,
          .rms_eps = g.rms_eps};
}

xtk_open_options options_of(const ScenarioPlan& plan) {
  int64_t longest = 0;
  int64_t pages = 1;
  std::vector<int64_t> request_keys(plan.rows.size(), 0);
  for (const RowPlan& row : plan.rows) {
    longest = std::max(longest, row.position + 1);
    if (row.request >= 0) {
      int64_t& keys = request_keys[static_cast<size_t>(row.request)];
      keys = std::max(keys, row.position + 1);
    }
  }
  for (const int64_t keys : request_keys) pages += pages_of(keys);
  xtk_open_options o = small_options();
  o.geometry = plan.geometry;
  // A row more than the launch has, where one more is allowed: nothing may
  // touch it.
  o.max_rows = static_cast<int32_t>(std::min<size_t>(8, plan.rows.size() + 1));
  o.max_partials = std::max(1, plan.partials);
  o.pages = static_cast<int32_t>(pages + 1);
  o.table_width = static_cast<int32_t>(pages_of(longest) + 2);
  o.max_keys = longest;
  o.score_stride = longest + 5;
  o.rope_positions = longest;
  o.list_entries =
      static_cast<int64_t>(plan.rows.size()) * (plan.geometry.k + kListGap) +
      kListGap;
  o.wave_size = plan.wave;
  o.schedule = plan.schedule;
  o.blocks = plan.blocks;
  o.seed = plan.seed;
  return o;
}

// Uniform in [-1, 1], a few distinct values a draw apart.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  float unit() {
    return static_cast<float>(static_cast<double>(engine_() >> 40) / (1 << 23) -
                              1.0);
  }
  std::vector<float> floats(size_t count, float scale, float offset = 0.0f) {
    std::vector<float> values(count);
    for (float& v : values) v = offset + scale * unit();
    return values;
  }
  std::vector<uint16_t> bf16(size_t count, float scale) {
    std::vector<uint16_t> codes(count);
    for (uint16_t& c : codes) c = oracle::f32_to_bf16(scale * unit());
    return codes;
  }

 private:
  std::mt19937_64 engine_;
};

int64_t bf16_steps(uint16_t a, uint16_t b) {
  const auto order = [](uint16_t code) {
    return (code & 0x8000) != 0 ? -int64_t{code & 0x7FFF} : int64_t{code};
  };
  return std::abs(order(a) - order(b));
}

double largest_of(std::span<const double> values) {
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

template <class T>
std::span<const T> part(const std::vector<T>& values, size_t row, size_t each) {
  return std::span<const T>(values).subspan(row * each, each);
}

}  // namespace

Scenario::Scenario(const ScenarioPlan& plan)
    : plan_(plan), options_(options_of(plan)), candidate_(options_) {
  make_inputs();
  const int layer = plan_.layer;
  candidate_.write(XTK_EMBEDDING, layer, in_.embedding);
  candidate_.write(XTK_INPUT_GAMMA, layer, in_.input_gamma);
  candidate_.write(XTK_Q_A, layer, in_.q_a);
  candidate_.write(XTK_Q_GAMMA, layer, in_.q_gamma);
  candidate_.write(XTK_WQ_B, layer, in_.wq_b);
  candidate_.write(XTK_WK, layer, in_.wk);
  candidate_.write(XTK_K_GAMMA, layer, in_.k_gamma);
  candidate_.write(XTK_K_BETA, layer, in_.k_beta);
  candidate_.write(XTK_WEIGHTS_PROJ, layer, in_.weights_proj);
  candidate_.write(XTK_ROPE_COS, 0, in_.rope_cos);
  candidate_.write(XTK_ROPE_SIN, 0, in_.rope_sin);
  candidate_.write(XTK_RESIDUAL, 0, in_.residual);
  candidate_.write(XTK_PARTIALS, 0, in_.partials);
  candidate_.write(XTK_TOKENS, 0, in_.tokens);
  candidate_.write(XTK_REQUESTS, 0, in_.requests);
  candidate_.write(XTK_POSITIONS, 0, in_.positions);
  candidate_.write(XTK_SLOTS, 0, in_.slots);
  candidate_.write(XTK_PAGE_TABLE, 0, in_.page_table);
  candidate_.write(XTK_INDPTR, 0, in_.indptr);
}

void Scenario::make_inputs() {
  Random random(plan_.seed);
  const xtk_geometry& g = plan_.geometry;
  const size_t rows = plan_.rows.size();
  const size_t hidden = static_cast<size_t>(g.hidden);
  const size_t q_lora = static_cast<size_t>(g.q_lora);
  const size_t heads = static_cast<size_t>(g.heads);
  in_.embedding =
      random.bf16(static_cast<size_t>(options_.vocabulary) * hidden, 1.0f);
  in_.input_gamma = random.floats(hidden, 0.5f, 1.0f);
  in_.q_a = random.bf16(q_lora * hidden, 0.05f);
  in_.q_gamma = random.floats(q_lora, 0.5f, 1.0f);
  in_.wq_b = random.bf16(heads * 128 * q_lora, 0.1f);
  in_.wk = random.bf16(128 * hidden, 0.05f);
  in_.k_gamma = random.floats(128, 0.5f, 1.0f);
  in_.k_beta = random.floats(128, 0.2f);
  in_.weights_proj = random.floats(heads * hidden, 0.05f);
  in_.residual = random.floats(rows * hidden, 2.0f);
  in_.partials = random.floats(
      static_cast<size_t>(options_.max_partials) * rows * hidden, 1.0f);
  if (plan_.kind == XTK_KIND_INDEX && plan_.partials >= 2) {
    // Some sums are 0 in the one right order and not in another: the large term
    // swallows the small ones, then goes away.
    const size_t last = static_cast<size_t>(plan_.partials) - 1;
    for (size_t i = 0; i < rows * hidden; i += 5) {
      in_.residual[i] = 0x1p25f;
      in_.partials[last * rows * hidden + i] = -0x1p25f;
    }
  }
  for (int64_t p = 0; p < options_.rope_positions; ++p) {
    for (int i = 0; i < 32; ++i) {
      const double angle =
          static_cast<double>(p) * std::pow(8e6, -2 * i / 64.0);
      in_.rope_cos.push_back(static_cast<float>(std::cos(angle)));
      in_.rope_sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }

  // Pages: 0 is the pad page, the last is unused, the others are dealt to
  // requests in a shuffled order.
  std::vector<int32_t> free_pages(static_cast<size_t>(options_.pages) - 2);
  std::iota(free_pages.begin(), free_pages.end(), 1);
  for (size_t i = free_pages.size(); i > 1; --i)
    std::swap(free_pages[i - 1], free_pages[random.bits() % i]);
  std::vector<std::vector<int32_t>> request_pages(rows);
  std::vector<int64_t> request_keys(rows, 0);
  for (const RowPlan& row : plan_.rows)
    if (row.request >= 0)
      request_keys[static_cast<size_t>(row.request)] = std::max(
          request_keys[static_cast<size_t>(row.request)], row.position + 1);
  size_t next = 0;
  for (size_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < pages_of(request_keys[r]); ++p)
      request_pages[r].push_back(free_pages[next++]);

  in_.cache.assign(static_cast<size_t>(options_.pages) * oracle::kPageBytes,
                   0x7F);
  const auto geometry = translated(g);
  for (size_t page = 0; page < static_cast<size_t>(options_.pages); ++page)
    for (size_t t = 0; t < 64; ++t) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(
          &in_.cache[oracle::scale_byte(static_cast<int64_t>(page * 64 + t))],
          &nan, 4);
    }
  for (size_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < request_keys[r]; ++p) {
      const int64_t slot = oracle::slot_of(request_pages[r], p);
      for (int d = 0; d < 128; ++d) {
        uint8_t code = static_cast<uint8_t>(random.bits() >> 17);
        if ((code & 0x7F) == 0x7F || code == 0x80) code = 0x35;  // never NaN
        in_.cache[oracle::key_byte(slot, d, geometry.page_layout)] = code;
      }
      const float scale =
          std::ldexp(1.0f, -9 + static_cast<int>(random.bits() % 5));
      std::memcpy(&in_.cache[oracle::scale_byte(slot)], &scale, 4);
    }
  }

  const size_t width = static_cast<size_t>(options_.table_width);
  in_.page_table.assign(rows * width, 0);
  int32_t entry = kListGap;
  in_.indptr.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    const size_t r = rows - 1 - i;  // lists are not in row order
    in_.indptr[r] = entry;
    if (live(r))
      entry += static_cast<int32_t>(std::min<int64_t>(keys(r), g.k)) + kListGap;
  }
  for (size_t r = 0; r < rows; ++r) {
    const RowPlan& row = plan_.rows[r];
    in_.tokens.push_back(static_cast<int32_t>(
        random.bits() % static_cast<uint64_t>(options_.vocabulary)));
    in_.requests.push_back(row.request);
    in_.positions.push_back(static_cast<int32_t>(row.position));
    const auto table = std::span(in_.page_table).subspan(r * width, width);
    for (int32_t& stale : table)
      stale = free_pages[random.bits() % free_pages.size()];
    if (live(r)) {
      const auto& pages = request_pages[static_cast<size_t>(row.request)];
      std::copy_n(pages.begin(), pages_of(keys(r)), table.begin());
    }
    in_.slots.push_back(
        live(r) ? static_cast<int32_t>(oracle::slot_of(table, row.position))
                : -1);
  }
}

void Scenario::launch(int attempt) {
  Random random(plan_.seed * 1000 + static_cast<uint64_t>(attempt) + 7);
  const auto geometry = translated(plan_.geometry);
  for (size_t r = 0; r < plan_.rows.size(); ++r) {
    if (!live(r)) continue;
    for (int d = 0; d < 128; ++d)
      in_.cache[oracle::key_byte(in_.slots[r], d, geometry.page_layout)] =
          static_cast<uint8_t>(random.bits() % 0x70);
    const float stale = 1e30f;
    std::memcpy(&in_.cache[oracle::scale_byte(in_.slots[r])], &stale, 4);
  }
  candidate_.write(XTK_CACHE, plan_.layer, in_.cache);
  before_.clear();
  for (int tensor = XTK_X; tensor < XTK_TENSOR_COUNT; ++tensor) {
    std::vector<uint8_t> pattern(
        xtk_tensor_bytes(candidate_.get(), static_cast<xtk_tensor>(tensor)));
    for (uint8_t& byte : pattern)
      byte = static_cast<uint8_t>(random.bits() >> 9);
    candidate_.write(static_cast<xtk_tensor>(tensor), 0, pattern);
    before_.push_back(std::move(pattern));
  }
  const int partials = plan_.kind == XTK_KIND_INDEX   ? plan_.partials
                       : plan_.kind == XTK_KIND_DENSE ? 1
                                                      : 0;
  const xtk_launch_args args{.struct_size = sizeof(xtk_launch_args),
                             .arm = plan_.arm,
                             .layer = plan_.layer,
                             .kind = plan_.kind,
                             .rows = static_cast<int32_t>(plan_.rows.size()),
                             .partials = partials};
  candidate_.check(xtk_launch(candidate_.get(), &args));
  candidate_.check(xtk_wait(candidate_.get()));
}

void Scenario::judge() const {
  judge_front();
  judge_keys_and_queries();
  judge_scores();
  judge_list();
  judge_inputs();
}

void Scenario::judge_front() const {
  const xtk_geometry& g = plan_.geometry;
  const size_t rows = plan_.rows.size();
  const size_t hidden = static_cast<size_t>(g.hidden);
  const size_t q_lora = static_cast<size_t>(g.q_lora);
  const size_t heads = static_cast<size_t>(g.heads);
  const auto x = candidate_.read<uint16_t>(XTK_X, 0);
  const auto q = candidate_.read<uint16_t>(XTK_Q_LORA, 0);
  const auto mailbox = candidate_.read<float>(XTK_MAILBOX, 0);
  const auto raw = candidate_.read<float>(XTK_RAW_KEY, 0);
  const auto w = candidate_.read<float>(XTK_W, 0);
  const double factor = oracle::head_weight_factor(translated(g));
  const auto near = [](std::span<const double> expected,
                       std::span<const float> got, double multiple) {
    const double bound = 3e-5 * largest_of(expected) * multiple;
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_LE(std::abs(expected[i] * multiple - static_cast<double>(got[i])),
                bound)
          << i;
  };
  for (size_t r = 0; r < held_rows(); ++r) {
    SCOPED_TRACE("row " + std::to_string(r));
    if (!live(r)) {
      const auto same = [&](int tensor, const auto& now, size_t each) {
        EXPECT_EQ(std::memcmp(&now[r * each],
                              &before_[static_cast<size_t>(tensor - XTK_X)]
                                      [r * each * sizeof(now[0])],
                              each * sizeof(now[0])),
                  0)
            << "tensor " << tensor;
      };
      same(XTK_X, x, hidden);
      same(XTK_Q_LORA, q, q_lora);
      same(XTK_MAILBOX, mailbox, heads * 128);
      same(XTK_RAW_KEY, raw, 128);
      same(XTK_W, w, heads);
      continue;
    }
    std::vector<float> h(hidden);
    if (plan_.kind == XTK_KIND_EMBED) {
      for (size_t i = 0; i < hidden; ++i)
        h[i] = oracle::bf16_to_f32(
            in_.embedding[static_cast<size_t>(in_.tokens[r]) * hidden + i]);
    } else {
      std::vector<std::span<const float>> partials;
      for (int t = 0; t < (plan_.kind == XTK_KIND_DENSE ? 1 : plan_.partials);
           ++t)
        partials.push_back(
            part(in_.partials, static_cast<size_t>(t) * rows + r, hidden));
      h = oracle::hidden_state(part(in_.residual, r, hidden), partials);
    }
    const auto normed =
        oracle::rms_norm(h, in_.input_gamma, static_cast<double>(g.rms_eps));
    for (size_t i = 0; i < hidden; ++i)
      ASSERT_LE(bf16_steps(x[r * hidden + i],
                           oracle::f32_to_bf16(static_cast<float>(normed[i]))),
                1)
          << i;
    const auto x_row = part(x, r, hidden);
    const auto down = oracle::project(in_.q_a, g.q_lora, g.hidden, x_row, 1);
    const auto lora =
        oracle::rms_norm(down, in_.q_gamma, static_cast<double>(g.rms_eps));
    for (size_t i = 0; i < q_lora; ++i) {
      const double error =
          std::abs(static_cast<double>(oracle::bf16_to_f32(q[r * q_lora + i])) -
                   lora[i]);
      ASSERT_TRUE(
          error <= 2e-5 * largest_of(lora) ||
          bf16_steps(q[r * q_lora + i],
                     oracle::f32_to_bf16(static_cast<float>(lora[i]))) <= 1)
          << i;
    }
    near(oracle::project(in_.wq_b, g.heads * 128, g.q_lora, part(q, r, q_lora),
                         1),
         part(mailbox, r, heads * 128), 1.0);
    near(oracle::project(in_.wk, 128, g.hidden, x_row, 1), part(raw, r, 128),
         1.0);
    near(oracle::project(in_.weights_proj, g.heads, g.hidden, x_row, 1),
         part(w, r, heads), factor);
  }
}

void Scenario::judge_keys_and_queries() const {
  const auto geometry = translated(plan_.geometry);
  const size_t heads = static_cast<size_t>(geometry.heads);
  const auto mailbox = candidate_.read<float>(XTK_MAILBOX);
  const auto raw = candidate_.read<float>(XTK_RAW_KEY);
  const auto query = candidate_.read<uint16_t>(XTK_INDEX_QUERY);
  std::vector<uint8_t> cache = in_.cache;
  for (size_t r = 0; r < held_rows(); ++r) {
    SCOPED_TRACE("row " + std::to_string(r));
    const auto got = part(query, r, heads * 128);
    if (!live(r)) {
      EXPECT_EQ(std::memcmp(got.data(),
                            &before_[XTK_INDEX_QUERY - XTK_X][r * heads * 256],
                            got.size_bytes()),
                0);
      continue;
    }
    const size_t position = static_cast<size_t>(plan_.rows[r].position);
    const oracle::RopeRow rope{part(in_.rope_cos, position, 32),
                               part(in_.rope_sin, position, 32)};
    EXPECT_TRUE(std::ranges::equal(
        got,
        oracle::index_query(part(mailbox, r, heads * 128), rope, geometry)));
    const auto key = oracle::index_key(part(raw, r, 128), in_.k_gamma,
                                       in_.k_beta, rope, geometry);
    for (size_t d = 0; d < 128; ++d)
      cache[oracle::key_byte(in_.slots[r], static_cast<int>(d),
                             geometry.page_layout)] = key.bytes[d];
    std::memcpy(&cache[oracle::scale_byte(in_.slots[r])], &key.scale, 4);
  }
  EXPECT_TRUE(cache == candidate_.read<uint8_t>(XTK_CACHE, plan_.layer))
      << "the cache as the launch leaves it";
}

void Scenario::judge_scores() const {
  const auto geometry = translated(plan_.geometry);
  const size_t heads = static_cast<size_t>(geometry.heads);
  const size_t stride = static_cast<size_t>(options_.score_stride);
  const size_t width = static_cast<size_t>(options_.table_width);
  const auto query = candidate_.read<uint16_t>(XTK_INDEX_QUERY);
  const auto w = candidate_.read<float>(XTK_W);
  const auto scores = candidate_.read<float>(XTK_SCORES);
  const auto cache = candidate_.read<uint8_t>(XTK_CACHE, plan_.layer);
  std::vector<oracle::ScoreRow> rows;
  for (size_t r = 0; r < plan_.rows.size(); ++r)
    rows.push_back({part(query, r, heads * 128), part(w, r, heads),
                    part(in_.page_table, r, width), keys(r)});
  const auto reference = oracle::scores(rows, cache, geometry);
  for (size_t r = 0; r < held_rows(); ++r) {
    SCOPED_TRACE("row " + std::to_string(r));
    const size_t n = static_cast<size_t>(keys(r));
    for (size_t j = 0; j < n; ++j) {
      const float got = scores[r * stride + j];
      ASSERT_LE(std::abs(static_cast<double>(got) - reference[r].value[j]),
                16.0 * static_cast<double>(reference[r].bound[j]))
          << "position " << j;
      if (reference[r].zero[j] != 0) {
        ASSERT_EQ(got, 0.0f) << "position " << j;
      }
    }
    EXPECT_EQ(std::memcmp(&scores[r * stride + n],
                          &before_[XTK_SCORES - XTK_X][(r * stride + n) * 4],
                          (stride - n) * 4),
              0)
        << "scores past n";
  }
}

void Scenario::judge_list() const {
  const size_t stride = static_cast<size_t>(options_.score_stride);
  const size_t width = static_cast<size_t>(options_.table_width);
  const auto scores = candidate_.read<float>(XTK_SCORES);
  std::vector<int32_t> expected(static_cast<size_t>(options_.list_entries));
  std::memcpy(expected.data(), before_[XTK_LIST - XTK_X].data(),
              expected.size() * 4);
  for (size_t r = 0; r < plan_.rows.size(); ++r) {
    const xtk_witness_row witness = candidate_.witness(static_cast<int>(r));
    EXPECT_EQ(witness.live, live(r) ? 1 : 0) << r;
    if (!live(r)) continue;
    const auto order = oracle::base_order(
        std::span(scores).subspan(r * stride, static_cast<size_t>(keys(r))),
        plan_.geometry.k);
    EXPECT_EQ(witness.stop_bits, order.bits) << r;
    for (size_t i = 0; i < order.positions.size(); ++i)
      expected[static_cast<size_t>(in_.indptr[r]) + i] = static_cast<int32_t>(
          oracle::slot_of(part(in_.page_table, r, width), order.positions[i]));
  }
  EXPECT_TRUE(expected == candidate_.read<int32_t>(XTK_LIST))
      << "lists and the guard entries between them";
}

void Scenario::judge_inputs() const {
  const auto same = [&](xtk_tensor tensor, int layer, const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    EXPECT_TRUE(values == candidate_.read<T>(tensor, layer, values.size()))
        << "input tensor " << tensor;
  };
  same(XTK_EMBEDDING, plan_.layer, in_.embedding);
  same(XTK_INPUT_GAMMA, plan_.layer, in_.input_gamma);
  same(XTK_Q_A, plan_.layer, in_.q_a);
  same(XTK_Q_GAMMA, plan_.layer, in_.q_gamma);
  same(XTK_WQ_B, plan_.layer, in_.wq_b);
  same(XTK_WK, plan_.layer, in_.wk);
  same(XTK_K_GAMMA, plan_.layer, in_.k_gamma);
  same(XTK_K_BETA, plan_.layer, in_.k_beta);
  same(XTK_WEIGHTS_PROJ, plan_.layer, in_.weights_proj);
  same(XTK_ROPE_COS, 0, in_.rope_cos);
  same(XTK_ROPE_SIN, 0, in_.rope_sin);
  same(XTK_RESIDUAL, 0, in_.residual);
  same(XTK_PARTIALS, 0, in_.partials);
  same(XTK_TOKENS, 0, in_.tokens);
  same(XTK_REQUESTS, 0, in_.requests);
  same(XTK_POSITIONS, 0, in_.positions);
  same(XTK_SLOTS, 0, in_.slots);
  same(XTK_PAGE_TABLE, 0, in_.page_table);
  same(XTK_INDPTR, 0, in_.indptr);
}

}  // namespace exact_topk::tests
