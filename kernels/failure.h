// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a call of the ABI fails inside the candidate: a status and its one
// sentence. candidate.cpp catches it at the border.

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/candidate.h"

namespace exact_topk::kernels {

class Failure : public std::runtime_error {
 public:
  Failure(xtk_status status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  xtk_status status() const { return status_; }

 private:
  xtk_status status_;  // never XTK_OK
};

// Refuses a call whose argument is wrong.
template <class... Values>
void require(bool good, fmt::format_string<Values...> sentence,
             Values&&... values) {
  if (!good)
    throw Failure(XTK_INVALID,
                  fmt::format(sentence, std::forward<Values>(values)...));
}

}  // namespace exact_topk::kernels
