// SPDX-License-Identifier: Apache-2.0
//
// The leaves of a launch case in a digest tree (SPEC section 8).
//
//   launch0/in/<weight>.npy         weights and rope table, whole
//   launch0/step0/in/<tensor>.npy   what a step reads, whole; step 0 also holds
//                                   cached_keys u8 [N][128] and cached_scales
//                                   f32 [N]: the N slots that hold a key before
//                                   step 0, by slot, in dim order
//   launch0/step0/in/poison_keys.npy, poison_scales.npy
//                                   u8 [L][128], f32 [L]: what the own slots of
//                                   the L live rows held before the launch
//   launch0/step0/row3/scores.npy   f32 [n]
//   launch0/step0/row3/list.npy     i32 [min(n, k)]
//
// Inputs are written by the first rank of a group, for every arm.
#pragma once

#include <span>
#include <string>

#include "cases/inputs.h"
#include "cases/plan.h"
#include "dumps/tree.h"
#include "harness/case_context.h"
#include "harness/dump_sink.h"
#include "harness/launch_inputs.h"
#include "harness/launch_outputs.h"

namespace exact_topk::harness {

// Where a case's leaves come from.
dumps::LeafInfo leaf_info(const CaseContext& context);

class LaunchDump {
 public:
  // `sink` may be null: nothing is written then. `info` says where the leaves
  // come from.
  LaunchDump(DumpSink* sink, const cases::Case& item, dumps::LeafInfo info,
             const std::vector<std::string>& arms);

  void layer_inputs(const LaunchInputs& inputs, int launch);
  void step_inputs(const LaunchInputs& inputs, const cases::Plan& plan,
                   const cases::Poison& poison, int launch, int step);
  void results(const LaunchOutputs& outputs, const cases::Step& rows,
               const std::string& arm, int launch, int step);
  // One row's leaf: `what` is "scores" or "list".
  void result(const std::string& arm, int launch, int step, int row,
              const char* what, const dumps::Tensor& tensor);

 private:
  bool writes_inputs() const {
    return sink_ != nullptr && info_.rank_in_group == 0;
  }
  // An input's leaf, in the tree of every arm.
  void input(const std::string& where, const std::string& name,
             const dumps::Tensor& tensor);
  void cached(const LaunchInputs& inputs, const cases::Plan& plan, int launch,
              const std::string& where);

  DumpSink* sink_;
  const cases::Case& item_;
  dumps::LeafInfo info_;
  const std::vector<std::string>& arms_;
  std::string name_;  // of the case
};

}  // namespace exact_topk::harness
