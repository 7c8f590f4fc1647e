// SPDX-License-Identifier: Apache-2.0
//
// The f64 references of a launch, shared out among the ranks of a group.
//
// Every rank launched, and a reference is computed from the tensors that a
// launch left. Before anything is judged the ranks compare digests of all that
// they published (snapshot.h). Where all agree, any rank's tensors are
// everybody's: each rank computes a part of every product (outputs of a
// projection, pages of the cache), the parts are exchanged, and each live row
// is judged by one rank. Where they do not agree the case has failed already,
// and every rank computes everything from its own tensors and judges all rows,
// so that the report says which stage is wrong on whom.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/group.h"
#include "oracle/front.h"
#include "oracle/scores.h"

namespace exact_topk::harness {

class ReferenceShare {
 public:
  // `together`: the ranks of the group agree. The methods are then collective.
  ReferenceShare(const Group& group, bool together)
      : group_(group), together_(together && group.size() > 1) {}

  // Whether this rank judges live row number `index`.
  bool judges(int index) const {
    return !together_ || index % group_.size() == group_.rank();
  }

  // oracle::project, whole.
  template <typename Matrix>
  std::vector<double> project(std::span<const Matrix> matrix, int outputs,
                              int inputs, std::span<const uint16_t> x,
                              int rows) const {
    if (!together_) return oracle::project(matrix, outputs, inputs, x, rows);
    const auto [begin, end] = group_.share(outputs);
    return join(oracle::project(matrix, outputs, inputs, x, rows,
                                {int(begin), int(end)}),
                outputs, rows);
  }

  // oracle::scores, whole for the rows that this rank judges.
  std::vector<oracle::RowScores> scores(std::span<const oracle::ScoreRow> rows,
                                        std::span<const uint8_t> cache,
                                        const oracle::Geometry& geometry) const;

 private:
  // Parts [rows][own outputs] of every rank to [rows][outputs].
  std::vector<double> join(std::span<const double> part, int outputs,
                           int rows) const;

  const Group& group_;
  bool together_;
};

}  // namespace exact_topk::harness
