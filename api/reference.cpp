// SPDX-License-Identifier: Apache-2.0
//
// What f64 scores alone can say: themselves, the list that they give, and a
// list against them.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "api/arguments.h"
#include "api/call.h"
#include "api/list_result.h"
#include "oracle/list_faults.h"
#include "oracle/reference_list.h"

namespace exact_topk::api {
namespace {

using oracle::Contract;

// The contract and the rules must be about no scores of the kernel's own.
void require_contract(const List& list) {
  require(
      list.contract != Contract::kSorted && list.contract != Contract::kBase,
      "list.contract is EXACT_TOPK_SORTED or BASE, which need the kernel's "
      "own scores");
  require(!list.rules.nan_last && !list.rules.zeros_equal,
          "list.nan_last and list.zeros_equal are rules for the kernel's own "
          "scores");
}

// What the list breaks of its contract, and where first.
struct Fault {
  oracle::FaultyEntry first;
  std::string sentence;  // empty: nothing
};

Fault validity_fault(const List& list, const oracle::RowScores& reference,
                     const oracle::ListVerdict& verdict) {
  const std::vector<float> scores = oracle::rounded(reference.value);
  const oracle::ListJudge judge(scores, list.k);
  const oracle::NamedList named{judge, verdict, Contract::kValid,
                                list.positions, list.entries};
  return {oracle::first_faulty_entry(named, scores, {}),
          oracle::first_sentence(oracle::list_faults(named), Contract::kValid)};
}

Fault beyond_fault(const List& list, const oracle::ReferenceVerdict& verdict,
                   const oracle::RowScores& reference) {
  Fault fault;
  std::int32_t position = verdict.first_missed_beyond;
  const char* state = "missed";
  if (verdict.first_extra_beyond >= 0) {
    position =
        list.positions[static_cast<std::size_t>(verdict.first_extra_beyond)];
    state = "listed";
  }
  fault.first = {verdict.first_extra_beyond, position};
  fault.sentence = fmt::format(
      "the k-th reference is {:.9g} and scores within the bound move keys by "
      "{:.3g}: {} missed keys lie above that, {} listed ones below; position "
      "{} with the reference {:.9g} is {}",
      verdict.threshold, verdict.margin, verdict.missed_beyond,
      verdict.extra_beyond, position,
      reference.value[static_cast<std::size_t>(position)], state);
  return fault;
}

Fault order_fault(const List& list, std::size_t entries) {
  const auto end =
      list.positions.begin() + static_cast<std::ptrdiff_t>(entries);
  const auto fall = std::is_sorted_until(list.positions.begin(), end);
  return {{fall - list.positions.begin(), *fall},
          "the list is not in the promised order: position"};
}

Fault fault_of(const List& list, const oracle::ReferenceVerdict& verdict,
               const oracle::RowScores& reference) {
  if (!verdict.exact.holds(Contract::kValid))
    return validity_fault(list, reference, verdict.exact);
  if (list.contract == Contract::kValid) return {};
  if (verdict.missed_beyond > 0 || verdict.extra_beyond > 0)
    return beyond_fault(list, verdict, reference);
  if (list.contract == Contract::kPosition && !verdict.exact.position)
    return order_fault(list, verdict.top_k.size());
  return {};
}

}  // namespace
}  // namespace exact_topk::api

using namespace exact_topk;

exact_topk_status exact_topk_scores_f64(const exact_topk_source* source,
                                        double* scores, char* sentence,
                                        size_t sentence_bytes) {
  return api::call({sentence, sentence_bytes}, [&] {
    const oracle::RowScores reference = api::reference_of(source);
    if (!reference.value.empty()) api::require_pointer(scores, "scores");
    std::ranges::copy(reference.value, scores);
    return "";
  });
}

exact_topk_status exact_topk_list_f64(const exact_topk_source* source,
                                      std::int32_t k, std::int32_t* positions,
                                      char* sentence, size_t sentence_bytes) {
  return api::call({sentence, sentence_bytes}, [&] {
    api::require_k(k, "k");
    const oracle::RowScores reference = api::reference_of(source);
    if (!reference.value.empty()) api::require_pointer(positions, "positions");
    std::ranges::copy(oracle::reference_order(reference.value, k).positions,
                      positions);
    return "";
  });
}

exact_topk_status exact_topk_check_list_f64(
    const exact_topk_source* source, const exact_topk_list* list, double bound,
    exact_topk_result* result, char* sentence, size_t sentence_bytes) {
  return api::call({sentence, sentence_bytes}, [&] {
    api::require_struct(result, "result");
    api::require_bound(bound);
    api::require_struct(source, "source");
    const oracle::RowScores reference = api::reference_of(source);
    const api::List made = api::list_of(list, source->keys);
    api::require_contract(made);
    const oracle::ReferenceVerdict verdict = oracle::judge_against_reference(
        made.positions, reference, made.k, bound);
    const api::Fault fault = api::fault_of(made, verdict, reference);
    const oracle::Agreement agreement = api::listed_agreement(
        made, verdict.top_k, source->keys, [&](std::int32_t position) {
          return reference.value[static_cast<std::size_t>(position)];
        });
    *result = api::list_result(verdict.exact);
    result->held = fault.sentence.empty() ? 1 : 0;
    result->beyond = verdict.missed_beyond + verdict.extra_beyond;
    result->first_index = fault.first.index;
    result->first_position = fault.first.position;
    result->relative_error = agreement.relative_error;
    result->cosine = agreement.cosine;
    return fault.sentence;
  });
}
