// SPDX-License-Identifier: Apache-2.0
#pragma once

// In which order the threads of a launch run.
//
// A thread runs until it waits (barrier, collective, poll) or exits; whoever
// completes a rendezvous releases a group of threads into the ready queue, and
// the queue's front runs next. A scheduler is an object that decides where in
// the queue a group's threads go and in which order blocks start: that is the
// whole freedom a schedule has. It does not preempt a thread between two
// rendezvous.
//
//   round-robin   in thread order, blocks in index order
//   reverse       last thread first, last block first
//   random:SEED   anywhere; SEED is a decimal number of 64 bits

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace exact_topk::hip::cpu {

struct Fiber;

/// The runnable threads of one launch, front first: a ring that never holds a
/// thread twice.
class ReadyQueue {
 public:
  /// Empties the queue and makes room for this many threads.
  void reset(std::size_t threads);
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  void push(Fiber* fiber) { ring_[tail_++ & mask_] = fiber; }
  Fiber* pop() { return ring_[head_++ & mask_]; }
  void swap(std::size_t i, std::size_t j) {
    std::swap(ring_[(head_ + i) & mask_], ring_[(head_ + j) & mask_]);
  }

 private:
  std::vector<Fiber*> ring_ = std::vector<Fiber*>(1);  // a power of two entries
  std::size_t mask_ = 0;                               // entries - 1
  std::size_t head_ = 0;                               // count of pops
  std::size_t tail_ = 0;                               // count of pushes
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Queues a group, given in thread order.
  virtual void release(ReadyQueue& queue, Fiber* const* group,
                       std::size_t count) = 0;
  /// The order in which `blocks` blocks start.
  virtual std::vector<std::uint32_t> block_order(std::uint32_t blocks) = 0;
};

/// The scheduler that a spec names, in its initial state: the same launch under
/// the same spec runs the same way whatever ran before. Throws
/// std::invalid_argument with one sentence for anything else.
std::unique_ptr<Scheduler> parse_schedule(std::string_view spec);

}  // namespace exact_topk::hip::cpu
