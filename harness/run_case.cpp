// SPDX-License-Identifier: Apache-2.0
#include "harness/run_case.h"

#include <fmt/format.h>

#include "harness/case_context.h"
#include "harness/run_launch_case.h"
#include "harness/run_score_case.h"
#include "harness/run_select_case.h"

namespace exact_topk::harness {
namespace {

// The stage of the ABI that a case's stage needs.
struct StageNeed {
  uint32_t bit;
  const char* name;
};
StageNeed need(cases::Stage stage) {
  switch (stage) {
    case cases::Stage::kScore:
      return {XTK_STAGE_SCORE, "score"};
    case cases::Stage::kSelect:
      return {XTK_STAGE_SELECT, "select"};
    case cases::Stage::kLaunch:
      break;
  }
  return {XTK_STAGE_LAUNCH, "launch"};
}

}  // namespace

CaseResult run_case(const cases::Case& item, int case_index,
                    const Settings& settings, const Group& group,
                    SharedInputs& weights, const Library& library,
                    DumpSink* sink) {
  const StageNeed stage = need(item.stage);
  if ((library.describe().stages & stage.bit) == 0)
    throw UsageError(fmt::format("candidate {} does not offer the stage {}",
                                 library.path(), stage.name));
  const cases::Plan plan = cases::make_plan(item, settings.seed);
  if (!plan.skipped.empty()) {
    CaseResult result;
    result.verdict = Outcome::kSkipped;
    result.reason = plan.skipped;
    return result;
  }
  const CaseContext context{item,  case_index, plan,    settings,
                            group, weights,    library, sink};
  switch (item.stage) {
    case cases::Stage::kScore:
      return run_score_case(context);
    case cases::Stage::kSelect:
      return run_select_case(context);
    case cases::Stage::kLaunch:
      break;
  }
  return run_launch_case(context);
}

}  // namespace exact_topk::harness
