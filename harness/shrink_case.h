// SPDX-License-Identifier: Apache-2.0
//
// --shrink FILE: the first row of a failed case of selection alone, made
// smaller by calling the candidate again and again, one row a call, and told as
// a capture that `check_topk --capture FILE` fails on without the candidate.
#pragma once

#include <optional>
#include <string>

#include "cases/case.h"
#include "harness/loader.h"
#include "harness/settings.h"

namespace exact_topk::harness {

struct Shrunk {
  std::string said;     // one line: what became of which row
  std::string capture;  // the bytes of the file
};

// Nothing where every row passes when it is alone. `repro` is the case's.
std::optional<Shrunk> shrink_case(const cases::Case& item,
                                  const std::string& repro,
                                  const Settings& settings,
                                  const Library& library);

}  // namespace exact_topk::harness
