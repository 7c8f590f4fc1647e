// SPDX-License-Identifier: Apache-2.0
//
// A board in shared memory on which the ranks of a node pin the results of
// finished cases. It exists for the rank that must leave in a hurry
// (failure.h): without any help from the others, which may be anywhere, it can
// still write a report with everything that the node has finished. In an
// ordinary run results are gathered through MPI and the board is not read.
//
// A place has a fixed size; a result that does not fit is pinned without its
// checks. Where there is no shared memory a rank sees its own results alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "harness/group.h"
#include "harness/result.h"

namespace exact_topk::harness {

class Board {
 public:
  // One place a case. Collective over the world.
  Board(const Group& world, int64_t cases);

  // Pins the result of a case. A case has one writer.
  void pin(int64_t case_index, const CaseResult& result);
  // The result of a case, if it has been pinned.
  std::optional<CaseResult> read(int64_t case_index) const;
  // For failure::set_claim.
  std::atomic<int>* claim() const;

 private:
  std::byte* place(int64_t case_index) const;

  SharedMemory
      memory_;  // the claim in a cache line of its own, then the places
};

}  // namespace exact_topk::harness
