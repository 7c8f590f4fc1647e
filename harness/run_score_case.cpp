// SPDX-License-Identifier: Apache-2.0
#include "harness/run_score_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cases/inputs.h"
#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/guarded_buffer.h"
#include "harness/judge.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/snapshot.h"

namespace exact_topk::harness {
namespace {

// Everything that the candidate reads, and must leave alone.
struct ScoreFeed {
  std::vector<uint16_t> query;      // bf16 [R][H][128]
  std::vector<float> weights;       // [R][H]
  std::vector<uint8_t> cache;       // [pages][8448]
  std::vector<int32_t> page_table;  // [R][table_width]
  std::vector<int32_t> lengths;     // [R]: n, 0 for a pad row
};

bool same_bits(const ScoreFeed& a, const ScoreFeed& b) {
  return a.query == b.query && a.cache == b.cache &&
         a.page_table == b.page_table && a.lengths == b.lengths &&
         std::memcmp(a.weights.data(), b.weights.data(),
                     a.weights.size() * sizeof(float)) == 0;
}

ScoreFeed make_feed(const CaseContext& c) {
  cases::ScoreInputs inputs = cases::score_inputs(c.item, c.settings.seed);
  ScoreFeed feed;
  feed.query = std::move(inputs.query);
  feed.weights = std::move(inputs.weights);
  feed.cache.resize(size_t(c.plan.pages) * oracle::kPageBytes);
  cases::fill(cases::Input::kCache, c.item, c.plan, c.settings.seed, 0, 0, 0,
              int64_t(feed.cache.size()),
              std::as_writable_bytes(std::span(feed.cache)));
  const cases::Step& step = c.plan.steps.front();
  feed.page_table = step.page_table;
  for (const cases::Row& row : step.rows)
    feed.lengths.push_back(row.live ? int32_t(row.keys()) : 0);
  return feed;
}

class ScoreCase {
 public:
  explicit ScoreCase(const CaseContext& context)
      : c_(context),
        feed_(make_feed(c_)),
        before_(feed_),
        scores_(c_.plan.score_stride * c_.item.rows, XTK_SCORES),
        candidate_(c_.library, options()),
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms) {
    const bool clobbers = c_.library.describe().clobbers_score_tail;
    for (size_t r = 0; r < feed_.lengths.size(); ++r)
      own_.emplace_back(int64_t(r) * c_.plan.score_stride,
                        clobbers ? c_.plan.score_stride : feed_.lengths[r]);
  }

  CaseResult run() {
    references_ =
        oracle::scores(rows(before_), before_.cache, c_.item.geometry);
    for (const std::string& arm : c_.settings.arms)
      if (!run_arm(arm)) break;
    const QueryFp8 queries =
        c_.settings.query_fp8 ? compare_queries() : QueryFp8{};
    CaseResult result = conclude(std::move(judgement_), c_.item, c_.group);
    result.query_fp8 = queries;
    return result;
  }

 private:
  xtk_open_options options() const {
    xtk_open_options options =
        abi_options(c_.item, c_.plan, c_.settings, c_.library.describe());
    options.layers = 0;
    return options;
  }
  Where where(int r, const std::string& arm) const {
    return {-1, -1, r, feed_.lengths[size_t(r)], c_.arm_name(arm)};
  }
  std::vector<oracle::ScoreRow> rows(const ScoreFeed& feed) const {
    const auto heads = size_t(c_.item.geometry.heads);
    const auto query = heads * oracle::kHeadDim;
    const auto width = size_t(c_.plan.table_width);
    std::vector<oracle::ScoreRow> rows;
    for (size_t r = 0; r < feed.lengths.size(); ++r)
      rows.push_back({std::span(feed.query).subspan(r * query, query),
                      std::span(feed.weights).subspan(r * heads, heads),
                      std::span(feed.page_table).subspan(r * width, width),
                      feed.lengths[r]});
    return rows;
  }
  std::span<const float> row_scores(int r) const {
    return scores_.row(int64_t{r} * c_.plan.score_stride,
                       feed_.lengths[size_t(r)]);
  }

  // The feed is to be what it is in `given` after the call, too.
  bool score(const std::string& arm, int attempt, const ScoreFeed& given) {
    scores_.fill({c_.settings.seed, 0, 0, attempt});
    const xtk_score_args args{sizeof(xtk_score_args), arm.c_str(),
                              c_.item.rows,           feed_.query.data(),
                              feed_.weights.data(),   feed_.cache.data(),
                              c_.plan.pages,          feed_.page_table.data(),
                              c_.plan.table_width,    feed_.lengths.data(),
                              scores_.data(),         c_.plan.score_stride};
    if (!all_launched(c_, judgement_.log, {-1, -1, -1, -1, c_.arm_name(arm)},
                      [&] { candidate_.score(args); }))
      return false;
    judgement_.log.record("untouched", {}, scores_.fault(own_));
    judgement_.log.record(
        "untouched", {},
        same_bits(feed_, given) ? "" : "an input of the scoring changed");
    return true;
  }
  bool score(const std::string& arm, int attempt) {
    return score(arm, attempt, before_);
  }

  // The check "reuse": called with the same pointers and negated weights, the
  // candidate scores with those: every sum is the negative of what it was. One
  // that keeps results by pointer or shape gives the old scores; one that was
  // wrong already has nothing new to show.
  bool reuse(const std::string& arm, const ScoreRules& rules) {
    const bool wrong_already = judgement_.log.failed();
    ScoreFeed negated = before_;
    for (float& weight : negated.weights) weight = -weight;
    std::copy(negated.weights.begin(), negated.weights.end(),
              feed_.weights.begin());
    const std::vector<Piece> old = all_scores();
    if (!score(arm, c_.settings.repeat + 1, negated)) return false;
    const std::vector<Piece> now = all_scores();
    for (size_t i = 0; i < now.size(); ++i) {
      const int r = now[i].row;
      if (wrong_already && now[i].bytes != old[i].bytes) continue;
      oracle::RowScores reference = references_[size_t(r)];
      for (double& value : reference.value) value = -value;
      const std::string fault =
          scores_fault(judge_scores(row_scores(r), reference, rules.bound),
                       row_scores(r), reference, rules.bound);
      judgement_.log.record(
          "reuse", where(r, arm),
          fault.empty() ? ""
                        : "called again with the same pointers and negated "
                          "weights: " +
                              fault);
    }
    std::copy(before_.weights.begin(), before_.weights.end(),
              feed_.weights.begin());
    return true;
  }

  std::vector<Piece> all_scores() const {
    std::vector<Piece> pieces;
    for (int r = 0; r < c_.item.rows; ++r) {
      const auto bytes = std::as_bytes(row_scores(r));
      if (!bytes.empty())
        pieces.push_back(
            {r, "scores", sizeof(float), {bytes.begin(), bytes.end()}});
    }
    return pieces;
  }

  bool run_arm(const std::string& arm) {
    if (!score(arm, 0)) return false;
    const ScoreRules rules{c_.item.integers() ? 0 : c_.settings.bound,
                           !c_.library.foreign()};
    const std::vector<Piece> first = all_scores();
    for (const Piece& piece : first) {
      ++judgement_.rows_with_keys;
      judge_scores_of(judgement_, where(piece.row, arm), row_scores(piece.row),
                      references_[size_t(piece.row)], rules);
      dump_.result(arm, 0, 0, piece.row, "scores",
                   {dumps::Dtype::f32,
                    {int64_t(piece.bytes.size() / sizeof(float))},
                    piece.bytes});
    }
    if (c_.settings.arms.size() > 1) compare_arms(arm, first);
    if (!reuse(arm, rules)) return false;
    for (int attempt = 1; attempt <= c_.settings.repeat; ++attempt) {
      if (!score(arm, attempt)) return false;
      record_repeat(judgement_.log, c_, first, all_scores(), attempt,
                    [&](int row) { return where(row, arm); });
    }
    return true;
  }

  // The check "topk_own": only keys about as good as the k-th change sides with
  // an FP8 query.
  QueryFp8 compare_queries() {
    const std::vector<uint8_t> magnitude_cache = magnitudes(before_.cache);
    const std::vector<oracle::ScoreRow> all = rows(before_);
    QueryFp8 sum;
    for (size_t r = 0; r < all.size(); ++r) {
      if (all[r].keys == 0) continue;
      const QueryFp8 row =
          compare_query_fp8(all[r], references_[r], before_.cache,
                            magnitude_cache, c_.item.geometry);
      judgement_.log.record(
          "topk_own", where(int(r), ""),
          row.outside == 0
              ? ""
              : fmt::format("{} keys that an FP8 query selects otherwise lie "
                            "outside its rounding, {:.3g} times as far from "
                            "the threshold as that reaches",
                            row.outside, row.furthest));
      sum.add(row);
    }
    return sum;
  }

  void compare_arms(const std::string& arm, const std::vector<Piece>& mine) {
    if (arm == c_.settings.arms.front())
      first_arm_ = mine;
    else
      record_arms(judgement_.log, c_, first_arm_, mine, arm,
                  [&](int row) { return where(row, ""); });
  }

  const CaseContext& c_;
  ScoreFeed feed_;
  const ScoreFeed before_;
  GuardedBuffer<float> scores_;
  std::vector<std::pair<int64_t, int64_t>> own_;  // scores of the rows
  Candidate candidate_;
  LaunchDump dump_;
  Judgement judgement_;
  std::vector<oracle::RowScores> references_;
  std::vector<Piece> first_arm_;
};

}  // namespace

CaseResult run_score_case(const CaseContext& context) {
  return ScoreCase(context).run();
}

}  // namespace exact_topk::harness
