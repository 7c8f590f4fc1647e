// SPDX-License-Identifier: Apache-2.0
//
// Which levels of the contract ladder (SPEC section 11) held in every list that
// was judged, whatever was promised. The three orders do not include one
// another, so that several levels may be the highest.
#pragma once

#include <cstdint>
#include <string>

#include "oracle/contract.h"

namespace exact_topk::harness {

struct Levels {
  int64_t lists = 0;    // judged
  uint32_t held = ~0u;  // bit c: Contract c held in all of them

  void add(const oracle::ListVerdict& verdict);
  void add(const Levels& other);  // of other lists
  bool holds(oracle::Contract contract) const;

  bool operator==(const Levels&) const = default;
};

// "highest sorted; held: valid values set sorted"; empty where no list was
// judged.
std::string to_string(const Levels& levels);

}  // namespace exact_topk::harness
