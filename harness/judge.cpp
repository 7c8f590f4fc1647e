// SPDX-License-Identifier: Apache-2.0
#include "harness/judge.h"

#include <algorithm>
#include <cstring>

#include "harness/diagnose.h"

namespace exact_topk::harness {
namespace {

void diagnose(Judgement& judgement, const Where& where, const ListRules& rules,
              std::span<const float> scores, const SlotMap& slots,
              const RowList& row) {
  const std::vector<int32_t> positions = positions_of(row.entries, slots);
  const std::vector<int64_t> entries(row.entries.begin(), row.entries.end());
  const std::string place = to_string(where);
  for (const std::string& line :
       diagnose_list({scores, rules.k, rules.contract, rules.values, positions,
                      slots.identity() ? std::span<const int64_t>()
                                       : std::span<const int64_t>(entries)}))
    judgement.diagnosis.push_back(place + ": " + line);
}

}  // namespace

void judge_scores_of(Judgement& judgement, const Where& where,
                     std::span<const float> scores,
                     const oracle::RowScores& reference,
                     const ScoreRules& rules) {
  const oracle::ScoreVerdict verdict =
      judgement.judges.scores(scores, reference, rules.bound);
  judgement.log.record("scores", where,
                       scores_fault(verdict, scores, reference, rules.bound));
  if (rules.own)
    judgement.log.record("rounding", where,
                         rounding_fault(verdict, scores, reference));
  judgement.max_score_error =
      std::max(judgement.max_score_error, verdict.max_error);
  judgement.max_bound_ratio =
      std::max(judgement.max_bound_ratio, verdict.max_bound_ratio);
  control_scores(judgement.controls, where, judgement.judges, scores, reference,
                 rules.bound);
}

void judge_list_of(Judgement& judgement, const Where& where,
                   const ListRules& rules, std::span<const float> scores,
                   std::span<const int32_t> table, const RowList& row) {
  const oracle::Contract contract = rules.contract;
  const oracle::ListJudge judge(scores, rules.k, rules.values);
  const SlotMap slots(table, int64_t(scores.size()));
  const RowListVerdict verdict = judgement.judges.list(judge, slots, row);
  record_list(judgement.log, where, contract, verdict, judge, slots, row);
  judgement.levels.add(verdict.list);
  if (!verdict.list.holds(contract) && judgement.diagnosed++ < kDiagnosedRows)
    diagnose(judgement, where, rules, scores, slots, row);
  judgement.missed += verdict.list.missed;
  if (contract == oracle::Contract::kBase)
    judgement.order_errors += verdict.list.order_errors;
  if (!scores.empty())
    judgement.facts.push_back(row_facts(scores, judge, verdict.list));
  control_list(judgement.controls, where, judgement.judges, contract, judge,
               slots, row, scores);
}

CaseResult conclude(Judgement judgement, const cases::Case& item,
                    const Group& group) {
  std::vector<RowFacts> facts;
  for (const std::vector<std::byte>& part :
       group.all_gather(std::as_bytes(std::span(judgement.facts)))) {
    const size_t old = facts.size();
    facts.resize(old + part.size() / sizeof(RowFacts));
    if (!part.empty())
      std::memcpy(static_cast<void*>(facts.data() + old), part.data(),
                  part.size());
  }
  const bool controls_ran = group.all_reduce_max(judgement.controls.run) > 0;
  const bool controls_due = group.all_reduce_max(judgement.rows_with_keys) > 0;
  if (controls_due && !controls_ran)
    judgement.log.record("controls", {},
                         "no negative control ran, though rows have keys");
  else if (judgement.controls.run > 0)
    judgement.log.record("controls", {}, judgement.controls.escaped);

  CaseResult result;
  result.checks = judgement.log.results();
  result.max_score_error = judgement.max_score_error;
  result.max_bound_ratio = judgement.max_bound_ratio;
  result.missed = judgement.missed;
  result.order_errors = judgement.order_errors;
  result.levels = judgement.levels;
  result.paths = std::move(judgement.paths);
  result.scratch = std::move(judgement.scratch);
  result.diagnosis = std::move(judgement.diagnosis);
  result.controls_run = judgement.controls.run;
  result.controls_caught = judgement.controls.caught;
  result.reason = mistrusted(item, facts);
  if (!result.reason.empty()) result.verdict = Outcome::kMistrusted;
  const auto failed = std::find_if(
      result.checks.begin(), result.checks.end(),
      [](const auto& check) { return check.outcome == Outcome::kFailed; });
  if (failed != result.checks.end()) {
    result.verdict = Outcome::kFailed;
    result.reason = failed->name + ": " + failed->reason;
  }
  return result;
}

}  // namespace exact_topk::harness
