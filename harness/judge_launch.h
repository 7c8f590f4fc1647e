// SPDX-License-Identifier: Apache-2.0
//
// Judges the live rows of one launch, stage by stage, each from the launch's
// own output of the stage before it (SPEC section 6, checks 1 to 3).
#pragma once

#include "cases/plan.h"
#include "harness/checks/untouched.h"
#include "harness/judge.h"
#include "harness/launch_inputs.h"
#include "harness/launch_outputs.h"
#include "harness/reference_share.h"

namespace exact_topk::harness {

// One launch and everything that it read and left.
struct LaunchView {
  const cases::Case& item;
  const cases::Step& step;
  const LaunchInputs& inputs;    // of the step
  const LaunchOutputs& outputs;  // as the launch left them
  Filling filling;               // of the outputs before the launch
  int table_width;               // columns of the page table
  ListRules list_rules;          // how lists are judged
  ScoreRules rules;
  std::string_view arm;  // empty where one arm runs
};

void judge_launch(Judgement& judgement, const LaunchView& view,
                  const ReferenceShare& share);

}  // namespace exact_topk::harness
