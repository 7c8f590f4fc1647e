// SPDX-License-Identifier: Apache-2.0
//
// Which group runs which case. The cases of one T form a phase; within it the
// longest come first and each group takes the next when it is free, by one
// atomic addition to a counter that rank 0 of the world holds. Nothing else is
// exchanged, so who runs what depends on time, and nothing that is reported
// may.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "cases/case.h"
#include "harness/group.h"

namespace exact_topk::harness {

class CaseQueue {
 public:
  // Collective over the world.
  explicit CaseQueue(const std::vector<cases::Case>& cases);
  CaseQueue(const CaseQueue&) = delete;
  CaseQueue& operator=(const CaseQueue&) = delete;
  ~CaseQueue();

  // The T of each phase, largest first.
  const std::vector<int>& phases() const { return tp_; }
  // The next case of a phase for this group, which all its ranks ask together;
  // nothing when the phase is over.
  std::optional<int64_t> next(size_t phase, const Group& group);
  // Cases that groups have taken so far, in all phases.
  int64_t taken();
  // Ends every phase: what has not been taken will not be.
  void stop();

 private:
  int64_t add(size_t phase, int64_t amount);

  std::vector<int> tp_;  // of each phase
  std::vector<std::vector<int64_t>>
      order_;                      // of each phase, indices into the cases
  MPI_Win window_ = MPI_WIN_NULL;  // rank 0: one counter a phase
};

}  // namespace exact_topk::harness
