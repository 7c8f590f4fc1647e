// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "api/arguments.h"
#include "api/call.h"
#include "api/list_result.h"
#include "oracle/agreement.h"
#include "oracle/score_verdict.h"

exact_topk_status exact_topk_check_scores(const exact_topk_scores* scores,
                                          const exact_topk_source* source,
                                          double bound,
                                          exact_topk_result* result,
                                          char* sentence,
                                          size_t sentence_bytes) {
  using namespace exact_topk;
  return api::call({sentence, sentence_bytes}, [&] {
    api::require_struct(result, "result");
    api::require_bound(bound);
    const api::Row row = api::row_of(scores);
    api::require_struct(source, "source");
    api::require(scores->n == source->keys,
                 fmt::format("scores.n is {}, and source.keys is {}", scores->n,
                             source->keys));
    const oracle::RowScores reference = api::reference_of(source);
    const oracle::ScoreVerdict verdict =
        oracle::judge_kept_scores(row.scores, reference, bound, row.format);
    oracle::AgreementSum sum;
    for (std::size_t j = 0; j < row.scores.size(); ++j)
      sum.add(reference.value[j], double{row.scores[j]});
    const oracle::Agreement agreement = sum.result();
    const std::string said =
        oracle::scores_fault(verdict, row.scores, reference, bound);
    *result = api::blank_result();
    result->held = verdict.faults == 0 ? 1 : 0;
    result->faults = verdict.faults;
    result->first_index = verdict.first;
    result->first_position = verdict.first;
    result->max_error = verdict.max_error;
    result->relative_error = agreement.relative_error;
    result->cosine = agreement.cosine;
    return said;
  });
}
