// SPDX-License-Identifier: Apache-2.0
//
// Steps that all ranks take together and that may go wrong on some of them:
// opening a library, reading a suite, writing a file. Afterwards all ranks
// know, and all leave with the same status and one sentence.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "harness/group.h"

namespace exact_topk::harness {

// The end of a run that every rank of the world throws alike. Not an exception
// of one rank: those end the process (failure.h).
struct Ended {
  int status;            // 2, or 77: no such device
  std::string sentence;  // of the lowest rank on which it went wrong
};

// The exit status that an exception stands for.
int status_of(const std::exception& error);

// Runs `step` on this rank; where it throws on any rank, every rank throws
// Ended. Collective over the world.
void together(const Group& world, const std::function<void()>& step);

}  // namespace exact_topk::harness
