// SPDX-License-Identifier: Apache-2.0
//
// What the running of one case, whatever its stage, is given, and the calls
// into a candidate that all stages make alike.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/plan.h"
#include "harness/checks/check_log.h"
#include "harness/dump_sink.h"
#include "harness/group.h"
#include "harness/judge.h"
#include "harness/loader.h"
#include "harness/settings.h"

namespace exact_topk::harness {

inline oracle::Contract claimed_contract(const Library& library) {
  return oracle::parse_contract(library.describe().contract).value();
}

struct CaseContext {
  const cases::Case& item;
  int case_index;  // place in the run's list
  const cases::Plan& plan;
  const Settings& settings;
  const Group& group;
  SharedInputs& weights;
  const Library& library;
  DumpSink* sink;  // may be null

  ListRules list_rules() const {
    return {contract_of(settings, claimed_contract(library)), settings.values,
            item.geometry.k};
  }
  // Names an arm in sentences, where there are several.
  std::string_view arm_name(const std::string& arm) const {
    return settings.arms.size() > 1 ? std::string_view(arm) : "";
  }
};

// Makes a call of a candidate on every rank of the group. False where it was
// XTK_FAILED on any rank, recorded as the check "launch" on that rank: the case
// cannot go on. Other failures are thrown. Collective.
template <typename Call>
bool all_launched(const CaseContext& context, CheckLog& log, const Where& where,
                  Call call) {
  std::string fault;
  try {
    call();
  } catch (const CandidateError& error) {
    if (error.status != XTK_FAILED) throw;
    fault = error.what();
  }
  log.record("launch", where, fault);
  return context.group.all_reduce_max(int64_t{!fault.empty()}) == 0;
}

}  // namespace exact_topk::harness
