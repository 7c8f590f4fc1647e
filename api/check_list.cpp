// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "api/arguments.h"
#include "api/call.h"
#include "api/list_result.h"
#include "oracle/list_faults.h"

exact_topk_status exact_topk_check_list(const exact_topk_scores* scores,
                                        const exact_topk_list* list,
                                        exact_topk_result* result,
                                        char* sentence, size_t sentence_bytes) {
  using namespace exact_topk;
  return api::call({sentence, sentence_bytes}, [&] {
    api::require_struct(result, "result");
    const api::Row row = api::row_of(scores);
    const api::List made = api::list_of(list, scores->n);
    const oracle::ListJudge judge(row.scores, made.k, made.rules);
    const oracle::ListVerdict verdict = judge.judge(made.positions);
    const oracle::NamedList named{judge, verdict, made.contract, made.positions,
                                  made.entries};
    const oracle::FaultyEntry first =
        oracle::first_faulty_entry(named, row.scores, made.rules);
    const oracle::Agreement agreement = api::listed_agreement(
        made, judge.top_k(), scores->n, [&](std::int32_t position) {
          const float score = row.scores[static_cast<std::size_t>(position)];
          // Last under that rule, and all of them one value.
          return made.rules.nan_last && std::isnan(score) ? -std::nan("")
                                                          : double{score};
        });
    const std::string said =
        oracle::first_sentence(oracle::list_faults(named), made.contract);
    *result = api::list_result(verdict);
    result->held = verdict.holds(made.contract) ? 1 : 0;
    result->first_index = first.index;
    result->first_position = first.position;
    result->relative_error = agreement.relative_error;
    result->cosine = agreement.cosine;
    return said;
  });
}
