// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/ladder.h"

#include <fmt/format.h>

namespace exact_topk::harness {

using oracle::Contract;

void record_ladder(CheckLog& log, const Where& where, Contract contract,
                   const oracle::ListFaults& faults, bool values_too) {
  const auto promised = [&](const char* check, bool yes,
                            const std::string& fault) {
    if (yes)
      log.record(check, where, fault);
    else
      log.untested(check, fmt::format("the contract is only {}",
                                      oracle::to_string(contract)));
  };
  const bool values = contract != Contract::kValid;
  const bool set = values && contract != Contract::kValues;
  log.record("count", where, faults.count);
  log.record("range", where, faults.range);
  log.record("duplicates", where, faults.duplicates);
  if (values_too || contract == Contract::kValues)
    promised("values", values, faults.values);
  promised("set", set, faults.set);
  promised("ties", set, faults.ties);
  promised("order", set && contract != Contract::kSet, faults.order);
}

}  // namespace exact_topk::harness
