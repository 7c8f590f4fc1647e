// SPDX-License-Identifier: Apache-2.0
#include "harness/case_queue.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>

namespace exact_topk::harness {
namespace {

constexpr int64_t kStop = int64_t{1} << 40;  // more than any run has cases

void check(int status, const char* call) {
  if (status != MPI_SUCCESS)
    throw std::runtime_error(std::string(call) +
                             " failed on the counters of cases");
}

// Roughly proportional to the time of a case: keys scored, and the matrix
// products of the front, which cost about as much as 2,000 keys.
int64_t cost(const cases::Case& c) {
  constexpr int64_t kFrontKeys = 2000;
  return (c.pos + kFrontKeys) * c.rows * c.launches * c.steps *
         c.geometry.heads;
}

}  // namespace

CaseQueue::CaseQueue(const std::vector<cases::Case>& cases) {
  std::map<int, std::vector<int64_t>, std::greater<>> by_tp;
  for (size_t i = 0; i < cases.size(); ++i)
    by_tp[cases[i].tp].push_back(static_cast<int64_t>(i));
  for (auto& [tp, order] : by_tp) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return cost(cases[static_cast<size_t>(a)]) >
             cost(cases[static_cast<size_t>(b)]);
    });
    tp_.push_back(tp);
    order_.push_back(std::move(order));
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const MPI_Aint bytes =
      rank == 0 ? static_cast<MPI_Aint>(tp_.size() * sizeof(int64_t)) : 0;
  int64_t* counters = nullptr;
  check(MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                         &counters, &window_),
        "MPI_Win_allocate");
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  if (rank == 0) std::fill_n(counters, tp_.size(), 0);
  check(MPI_Win_sync(window_), "MPI_Win_sync");
  check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

CaseQueue::~CaseQueue() {
  if (std::uncaught_exceptions() > 0) return;  // see group.h
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

int64_t CaseQueue::add(size_t phase, int64_t amount) {
  int64_t before = 0;
  check(MPI_Fetch_and_op(&amount, &before, MPI_INT64_T, 0,
                         static_cast<MPI_Aint>(phase), MPI_SUM, window_),
        "MPI_Fetch_and_op");
  check(MPI_Win_flush(0, window_), "MPI_Win_flush");
  return before;
}

std::optional<int64_t> CaseQueue::next(size_t phase, const Group& group) {
  const int64_t taken =
      group.all_reduce_max(group.rank() == 0 ? add(phase, 1) : int64_t{-1});
  if (taken >= static_cast<int64_t>(order_[phase].size())) return std::nullopt;
  return order_[phase][static_cast<size_t>(taken)];
}

int64_t CaseQueue::taken() {
  int64_t sum = 0;
  for (size_t phase = 0; phase < tp_.size(); ++phase)
    sum += std::min(add(phase, 0), static_cast<int64_t>(order_[phase].size()));
  return sum;
}

void CaseQueue::stop() {
  for (size_t phase = 0; phase < tp_.size(); ++phase) add(phase, kStop);
}

}  // namespace exact_topk::harness
