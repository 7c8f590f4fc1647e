// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/order.h"
#include "harness/checks/bitwise.h"
#include "harness/checks/close.h"
#include "oracle/formats.h"

namespace exact_topk::harness {
namespace {

using cases::Input;

// The judging of one launch. Rows are live rows, numbered among themselves.
class LaunchJudging {
 public:
  LaunchJudging(Judgement& judgement, const LaunchView& view,
                const ReferenceShare& share)
      : judgement_(judgement), view_(view), share_(share) {
    for (size_t r = 0; r < view.step.rows.size(); ++r)
      if (view.step.rows[r].live) live_.push_back(int(r));
  }

  void run() {
    for (size_t i = 0; i < live_.size(); ++i)
      judgement_.rows_with_keys += share_.judges(int(i)) && keys(int(i)) > 0;
    x();
    q_lora();
    mailbox();
    raw_key();
    w();
    query();
    key();
    scores();
    list();
  }

 private:
  int64_t keys(int i) const {
    return view_.step.rows[size_t(live_[size_t(i)])].keys();
  }
  Where where(int i) const {
    return {view_.filling.launch, view_.filling.step, live_[size_t(i)], keys(i),
            view_.arm};
  }
  template <typename T>
  std::span<const T> input(Input tensor) const {
    return view_.inputs.as<T>(tensor, view_.filling.launch);
  }
  template <typename T>
  std::span<const T> output(xtk_tensor tensor, int i) const {
    return view_.outputs.row<T>(tensor, view_.step, live_[size_t(i)]);
  }
  // An output of all live rows, packed.
  template <typename T>
  std::vector<T> packed(xtk_tensor tensor) const {
    std::vector<T> all;
    for (int i = 0; i < int(live_.size()); ++i) {
      const std::span<const T> row = output<T>(tensor, i);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }
  oracle::RopeRow rope(int i) const {
    constexpr size_t kPairs = oracle::kRopeDims / 2;
    const auto p = size_t(view_.step.rows[size_t(live_[size_t(i)])].position);
    return {input<float>(Input::kRopeCos).subspan(p * kPairs, kPairs),
            input<float>(Input::kRopeSin).subspan(p * kPairs, kPairs)};
  }
  std::span<const int32_t> table(int i) const {
    const auto width = size_t(view_.table_width);
    return input<int32_t>(Input::kPageTable)
        .subspan(size_t(live_[size_t(i)]) * width, width);
  }

  // Whether the tensors that a check needs are published; says so where not.
  bool has(const char* check, std::initializer_list<xtk_tensor> needed) {
    for (const xtk_tensor tensor : needed)
      if (!view_.outputs.has(tensor)) {
        judgement_.log.untested(check,
                                fmt::format("the candidate does not publish {}",
                                            output_name(tensor)));
        return false;
      }
    return true;
  }
  // Makes a check of every row that this rank judges.
  template <typename Fault>
  void check(const char* name, Fault fault) {
    for (int i = 0; i < int(live_.size()); ++i)
      if (share_.judges(i)) judgement_.log.record(name, where(i), fault(i));
  }

  std::vector<float> hidden(int i) const {
    const auto row = size_t(live_[size_t(i)]);
    const auto width = size_t(view_.item.geometry.hidden);
    const cases::Kind kind = cases::kind_of(view_.item, view_.filling.launch);
    if (kind == cases::Kind::kEmbed) {
      const auto token = size_t(input<int32_t>(Input::kTokens)[row]);
      const auto code =
          input<uint16_t>(Input::kEmbedding).subspan(token * width, width);
      std::vector<float> h(width);
      std::transform(code.begin(), code.end(), h.begin(),
                     [](uint16_t c) { return oracle::bf16_to_f32(c); });
      return h;
    }
    const std::span<const float> sums = input<float>(Input::kPartials);
    const size_t rows = view_.step.rows.size();
    std::vector<std::span<const float>> partials;
    for (size_t at = row * width; at < sums.size(); at += rows * width) {
      partials.push_back(sums.subspan(at, width));
      if (kind == cases::Kind::kDense) break;  // the one output
    }
    return oracle::hidden_state(
        input<float>(Input::kResidual).subspan(row * width, width), partials);
  }

  void x() {
    if (!has("x", {XTK_X})) return;
    check("x", [&](int i) {
      return close_fault(
          output<uint16_t>(XTK_X, i),
          oracle::rms_norm(hidden(i), input<float>(Input::kInputGamma),
                           double{view_.item.geometry.rms_eps}),
          kX);
    });
  }

  // The reference of matrix * source for all live rows, [rows][outputs].
  template <typename Matrix>
  std::vector<double> product(Input matrix, xtk_tensor source, int outputs,
                              int inputs) const {
    return share_.project(input<Matrix>(matrix), outputs, inputs,
                          packed<uint16_t>(source), int(live_.size()));
  }

  void q_lora() {
    if (!has("q_lora", {XTK_Q_LORA, XTK_X})) return;
    const oracle::Geometry& g = view_.item.geometry;
    const std::vector<double> y =
        product<uint16_t>(Input::kQA, XTK_X, g.q_lora, g.hidden);
    check("q_lora", [&](int i) {
      return close_fault(
          output<uint16_t>(XTK_Q_LORA, i),
          oracle::rms_norm(std::span(y).subspan(size_t(i) * size_t(g.q_lora),
                                                size_t(g.q_lora)),
                           input<float>(Input::kQGamma), double{g.rms_eps}),
          kQLora);
    });
  }

  // A projection that is published as it is.
  void projected(xtk_tensor tensor, const std::vector<double>& reference) {
    const size_t width = reference.size() / live_.size();
    check(output_name(tensor), [&](int i) {
      return close_fault(output<float>(tensor, i),
                         std::span(reference).subspan(size_t(i) * width, width),
                         kProjected);
    });
  }

  void mailbox() {
    if (!has("mailbox", {XTK_MAILBOX, XTK_Q_LORA})) return;
    const oracle::Geometry& g = view_.item.geometry;
    projected(XTK_MAILBOX,
              product<uint16_t>(Input::kWqB, XTK_Q_LORA,
                                g.heads * oracle::kHeadDim, g.q_lora));
  }

  void raw_key() {
    if (!has("raw_key", {XTK_RAW_KEY, XTK_X})) return;
    projected(XTK_RAW_KEY,
              product<uint16_t>(Input::kWk, XTK_X, oracle::kHeadDim,
                                view_.item.geometry.hidden));
  }

  void w() {
    if (!has("w", {XTK_W, XTK_X})) return;
    const oracle::Geometry& g = view_.item.geometry;
    std::vector<double> reference =
        product<float>(Input::kWeightsProj, XTK_X, g.heads, g.hidden);
    for (double& value : reference) value *= oracle::head_weight_factor(g);
    projected(XTK_W, reference);
  }

  std::vector<uint16_t> reference_query(int i) const {
    return oracle::index_query(output<float>(XTK_MAILBOX, i), rope(i),
                               view_.item.geometry);
  }

  void query() {
    if (!has("query", {XTK_INDEX_QUERY, XTK_MAILBOX})) return;
    check("query", [&](int i) {
      return query_fault(output<uint16_t>(XTK_INDEX_QUERY, i),
                         reference_query(i));
    });
  }

  void key() {
    if (!has("key", {XTK_RAW_KEY})) return;
    const oracle::Geometry& g = view_.item.geometry;
    check("key", [&](int i) {
      const int64_t slot = view_.step.rows[size_t(live_[size_t(i)])].slot;
      return key_fault(
          cached_key(view_.outputs.cache(), slot, g.page_layout),
          oracle::index_key(output<float>(XTK_RAW_KEY, i),
                            input<float>(Input::kKGamma),
                            input<float>(Input::kKBeta), rope(i), g),
          slot);
    });
  }

  void scores() {
    if (!has("scores", {XTK_SCORES, XTK_MAILBOX, XTK_W})) return;
    std::vector<std::vector<uint16_t>> queries;
    std::vector<oracle::ScoreRow> rows;
    for (int i = 0; i < int(live_.size()); ++i)
      queries.push_back(reference_query(i));
    for (int i = 0; i < int(live_.size()); ++i)
      rows.push_back(
          {queries[size_t(i)], output<float>(XTK_W, i), table(i), keys(i)});
    const std::vector<oracle::RowScores> references =
        share_.scores(rows, view_.outputs.cache(), view_.item.geometry);
    for (int i = 0; i < int(live_.size()); ++i)
      if (share_.judges(i))
        judge_scores_of(judgement_, where(i), output<float>(XTK_SCORES, i),
                        references[size_t(i)], view_.rules);
  }

  void list() {
    if (!has("list", {XTK_LIST, XTK_SCORES})) return;
    for (int i = 0; i < int(live_.size()); ++i) {
      if (!share_.judges(i)) continue;
      const std::span<const int32_t> entries = output<int32_t>(XTK_LIST, i);
      std::vector<int32_t> before(entries.size());
      const auto first = size_t(view_.step.indptr[size_t(live_[size_t(i)])]);
      filled(view_.filling, XTK_LIST, first * sizeof(int32_t),
             std::as_writable_bytes(std::span(before)));
      judge_list_of(judgement_, where(i), view_.list_rules,
                    output<float>(XTK_SCORES, i), table(i), {entries, before});
    }
  }

  Judgement& judgement_;
  const LaunchView& view_;
  const ReferenceShare& share_;
  std::vector<int> live_;  // step rows
};

}  // namespace

void judge_launch(Judgement& judgement, const LaunchView& view,
                  const ReferenceShare& share) {
  LaunchJudging(judgement, view, share).run();
}

}  // namespace exact_topk::harness
