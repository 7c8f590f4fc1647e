// SPDX-License-Identifier: Apache-2.0
//
// What one rank found out about one case, and the parts of judging that all
// stages share: a row's scores, a row's list, their negative controls, and the
// conclusion that a group draws together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/case.h"
#include "harness/checks/check_log.h"
#include "harness/controls.h"
#include "harness/group.h"
#include "harness/paths.h"
#include "harness/result.h"
#include "harness/trust.h"

namespace exact_topk::harness {

struct Judgement {
  CheckLog log;
  Judges judges;  // proven by the controls
  ControlTally controls;
  double max_score_error = 0;  // see CaseResult
  double max_bound_ratio = 0;
  int64_t missed = 0;
  int64_t order_errors = 0;
  int64_t rows_with_keys = 0;   // live rows of n >= 1 that this rank judged
  std::vector<RowFacts> facts;  // of the rows whose list was judged
  Levels levels;                // that held in those lists
  ArmPaths paths;               // that each arm took
  std::vector<std::string> diagnosis;  // of the first rows whose list failed
  int diagnosed = 0;                   // how many those are
};

// How scores are judged.
struct ScoreRules {
  double bound = 1e-4;  // over the row's largest |reference|
  bool own = false;     // our own candidate: held to rounding bounds too
};

// A row's scores and the controls (c) and (d).
void judge_scores_of(Judgement& judgement, const Where& where,
                     std::span<const float> scores,
                     const oracle::RowScores& reference,
                     const ScoreRules& rules);

// How lists are judged.
struct ListRules {
  oracle::Contract contract{};  // what they must hold
  oracle::ValueRules values;    // how scores rank
  int k = 0;                    // entries of a full list
};

// A row's list against its own scores and the controls (a) and (b). `table` is
// empty where entries are positions.
void judge_list_of(Judgement& judgement, const Where& where,
                   const ListRules& rules, std::span<const float> scores,
                   std::span<const int32_t> table, const RowList& row);

// The case's result: that controls ran and were caught, and whether the case
// is mistrusted, are agreed on in the group. Collective.
CaseResult conclude(Judgement judgement, const cases::Case& item,
                    const Group& group);

}  // namespace exact_topk::harness
