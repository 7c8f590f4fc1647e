// SPDX-License-Identifier: Apache-2.0
//
// Device memory that an arm's launches need besides the tensors, on one rank,
// as the candidate says (xtk_scratch_bytes). Candidates that do not export it
// have none here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace exact_topk::harness {

// Bytes by arm.
using ArmScratch = std::map<std::string, uint64_t>;

// The most of both.
inline void add(ArmScratch& all, const ArmScratch& more) {
  for (const auto& [arm, bytes] : more) all[arm] = std::max(all[arm], bytes);
}

}  // namespace exact_topk::harness
