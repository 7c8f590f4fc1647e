// SPDX-License-Identifier: Apache-2.0
#include "harness/check_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/checks/check_log.h"
#include "harness/checks/ladder.h"
#include "harness/diagnose.h"
#include "harness/parallel.h"
#include "oracle/score_verdict.h"

namespace exact_topk::harness {
namespace {

using oracle::Contract;

// A row's scores against f64.
struct JudgedScores {
  oracle::RowScores reference;
  oracle::ScoreVerdict verdict;
};

// What is kept of a row when its scores are let go.
struct RowResult {
  oracle::ListVerdict list;
  oracle::ListFaults list_faults;  // all empty where the contract held
  std::string scores_fault;        // empty where they hold, or were not judged
  double max_error = 0;  // of the scores, over the largest |reference|
};

class CaptureCheck {
 public:
  CaptureCheck(const Capture& capture, const CaptureRules& rules)
      : capture_(capture), rules_(rules) {}

  CaseResult run(std::pair<int64_t, int64_t> rows) const {
    const auto [begin, end] = rows;
    std::vector<RowResult> results(static_cast<size_t>(end - begin));
    parallel_for(end - begin, rules_.threads, [&, first = begin](int64_t i) {
      results[size_t(i)] = judge(first + i);
    });

    CaseResult all;
    CheckLog log;
    int64_t diagnosed = 0;
    for (int64_t r = begin; r < end; ++r) {
      const RowResult& row = results[size_t(r - begin)];
      const Where where{-1, -1, int(r), capture_.keys(r)};
      record_ladder(log, where, rules_.contract, row.list_faults, true);
      record_scores(log, where, row);
      all.levels.add(row.list);
      all.missed += row.list.missed;
      if (rules_.contract == Contract::kBase)
        all.order_errors += row.list.order_errors;
      all.max_score_error = std::max(all.max_score_error, row.max_error);
      const bool list_fails = !row.list.holds(rules_.contract);
      if ((list_fails || !row.scores_fault.empty()) &&
          diagnosed++ < kDiagnosedRows)
        diagnose(r, list_fails, !row.scores_fault.empty(), all.diagnosis);
    }
    if (diagnosed > kDiagnosedRows)
      all.diagnosis.push_back(
          fmt::format("{} more rows fail", diagnosed - kDiagnosedRows));
    all.checks = log.results();
    conclude(all);
    return all;
  }

 private:
  RowResult judge(int64_t r) const {
    const std::vector<float> scores = capture_.scores(r);
    const std::vector<int32_t> positions = capture_.positions(r);
    const oracle::ListJudge judge(scores, capture_.k(), rules_.values);
    RowResult result;
    result.list = judge.judge(positions);
    if (!result.list.holds(rules_.contract))
      result.list_faults =
          oracle::list_faults({judge, result.list, rules_.contract, positions,
                               capture_.entries(r)});
    if (capture_.has_query() && !scores.empty()) {
      const JudgedScores judged = judge_row_scores(r, scores);
      result.scores_fault =
          scores_fault(judged.verdict, scores, judged.reference, rules_.bound);
      result.max_error = judged.verdict.max_error;
    }
    return result;
  }

  JudgedScores judge_row_scores(int64_t r,
                                std::span<const float> scores) const {
    const std::vector<double> query = capture_.query(r);
    const std::vector<float> weights = capture_.head_weights(r);
    const std::vector<int32_t> pages = capture_.pages(r);
    const oracle::WideScoreRow row{query, weights, pages, capture_.keys(r)};
    JudgedScores judged;
    judged.reference =
        std::move(oracle::scores(std::span(&row, 1), capture_.cache(),
                                 capture_.geometry())
                      .front());
    judged.verdict = judge_kept_scores(scores, judged.reference, rules_.bound,
                                       capture_.score_format());
    return judged;
  }

  void record_scores(CheckLog& log, const Where& where,
                     const RowResult& row) const {
    if (capture_.has_query())
      log.record("scores", where, row.scores_fault);
    else
      log.untested("scores", "the capture has no index_q");
  }

  void diagnose(int64_t r, bool list_fails, bool scores_fail,
                std::vector<std::string>& lines) const {
    const std::vector<float> scores = capture_.scores(r);
    const auto add = [&](const std::vector<std::string>& said) {
      for (const std::string& line : said)
        lines.push_back(fmt::format("row {}: {}", r, line));
    };
    if (list_fails) {
      const std::vector<int32_t> positions = capture_.positions(r);
      const std::vector<int64_t> entries = capture_.entries(r);
      add(diagnose_list(
          {scores, capture_.k(), rules_.contract, rules_.values, positions,
           capture_.entries_are_slots() ? std::span<const int64_t>(entries)
                                        : std::span<const int64_t>()}));
    }
    if (scores_fail) {
      const JudgedScores judged = judge_row_scores(r, scores);
      const std::vector<int64_t> wrong = wrong_scores(
          scores, judged.reference, rules_.bound, capture_.score_format());
      add(diagnose_scores(
          {scores, judged.reference, wrong,
           rules_.bound * judged.reference.largest,
           [&](int64_t position) { return capture_.key_scale(r, position); }}));
    }
  }

  void conclude(CaseResult& all) const {
    const auto failed = std::find_if(
        all.checks.begin(), all.checks.end(),
        [](const auto& c) { return c.outcome == Outcome::kFailed; });
    if (failed != all.checks.end()) {
      all.verdict = Outcome::kFailed;
      all.reason = failed->name + ": " + failed->reason;
    } else if (capture_.longest() <= capture_.k()) {
      all.reason = fmt::format(
          "no row has more than k = {} keys: this proves nothing about "
          "selection",
          capture_.k());
    }
  }

  const Capture& capture_;
  const CaptureRules& rules_;
};

}  // namespace

CaseResult check_capture(const Capture& capture, const CaptureRules& rules,
                         std::pair<int64_t, int64_t> rows) {
  return CaptureCheck(capture, rules).run(rows);
}

}  // namespace exact_topk::harness
