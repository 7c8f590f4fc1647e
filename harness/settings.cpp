// SPDX-License-Identifier: Apache-2.0
#include "harness/settings.h"

#include "harness/failure.h"

namespace exact_topk::harness {

oracle::Contract contract_of(const Settings& settings,
                             oracle::Contract claimed) {
  const oracle::Contract contract = settings.contract.value_or(claimed);
  if (contract == oracle::Contract::kBase &&
      (settings.values.nan_last || settings.values.zeros_equal))
    throw UsageError(
        "the contract base ranks by radix key alone: --nan last and --zeros "
        "equal cannot be combined with it");
  return contract;
}

}  // namespace exact_topk::harness
