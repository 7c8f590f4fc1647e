// SPDX-License-Identifier: Apache-2.0
//
// Groups of MPI ranks that run cases together, and memory that the ranks of a
// node share.
//
// A world of N ranks is cut into groups of T consecutive ranks; where N < T
// every rank is a group of its own that stands for the T
// ("emulates"). One process without mpirun is a world of one. Everything here
// is collective over the group unless said otherwise, and an MPI error is a
// std::runtime_error of one sentence. Payloads are bytes: what they mean is the
// caller's.
//
// What a rank has made together with others it also destroys together with
// them, in the same order. An exception of one rank alone would leave the
// others waiting, so nothing is taken down while one is on its way: the process
// is about to end (failure.h).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace exact_topk::harness {

class Group {
 public:
  // The whole world, as one group. MPI must be initialised.
  static Group world();
  // This rank's group of `size` consecutive world ranks, or of itself alone
  // where the world has fewer. Collective over the world, whose size must be a
  // multiple of `size` or less than it.
  static Group of(int size);

  int rank() const { return rank_; }  // within the group
  int size() const { return size_; }  // ranks that really run
  bool emulates() const {
    return emulates_;
  }  // whether this one rank stands for more
  int index() const {
    return index_;
  }  // of this group among the groups of the world
  int count() const { return count_; }  // groups in the world
  int node_rank() const;                // among the group's ranks on this node
  MPI_Comm comm() const { return comm_.get()->handle; }

  void barrier() const;
  int64_t all_reduce_min(int64_t value) const;
  int64_t all_reduce_max(int64_t value) const;
  int64_t all_reduce_sum(int64_t value) const;
  double all_reduce_max(double value) const;  // NaN where any rank has one
  // `root`'s bytes, whatever the others pass.
  std::vector<std::byte> broadcast(std::span<const std::byte> bytes,
                                   int root) const;
  std::string broadcast(const std::string& text, int root) const;
  // Every rank's bytes, in rank order; lengths may differ.
  std::vector<std::vector<std::byte>> all_gather(
      std::span<const std::byte> bytes) const;
  std::vector<std::string> all_gather(const std::string& text) const;
  // Whether every rank passes the same 64 bits (a digest of what must agree).
  bool agree(uint64_t value) const;

  // The share of `items` (rows, elements ...) that falls to this rank: [first,
  // second). Not collective.
  std::pair<int64_t, int64_t> share(int64_t items) const;

 private:
  struct Comm {  // owns a communicator and that of its ranks on this node
    explicit Comm(MPI_Comm h);
    Comm(const Comm&) = delete;
    Comm& operator=(const Comm&) = delete;
    ~Comm();
    MPI_Comm handle;                // of the group
    MPI_Comm node = MPI_COMM_NULL;  // its part on this node
  };
  Group(MPI_Comm comm, bool emulates, int index, int count);

  std::shared_ptr<const Comm> comm_;  // copies of a group share it
  int rank_ = 0, size_ = 1;           // of comm_
  bool emulates_ = false;             // see emulates()
  int index_ = 0, count_ = 1;         // see index() and count()

  friend class SharedMemory;
};

// Memory that the ranks of a group on one node see as one, zeroed when made.
// Where /dev/shm lacks the room every rank has a private copy instead, which it
// fills alone; fill() hides the difference. Destruction is collective like
// construction: hold these where all ranks of a group destroy them in the same
// order.
class SharedMemory {
 public:
  SharedMemory(const Group& group, uint64_t bytes);
  SharedMemory(SharedMemory&&) noexcept;
  SharedMemory& operator=(SharedMemory&&) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const;
  bool shared() const;  // false: a private copy (also where the group has one
                        // rank on this node)
  // Makes the stores of every rank before the call visible to every rank after
  // it, and waits for all of them.
  void fence() const;
  // The part of `items` that this rank is to write, [first, second); everything
  // where the copy is private.
  std::pair<int64_t, int64_t> share(int64_t items) const;
  // Fills `elements` elements of `element_bytes` each from byte `offset` on:
  // every rank writes its share through `write(begin, end, out)`, `out` being
  // exactly the elements [begin, end). Ends with a fence.
  using Write =
      std::function<void(int64_t begin, int64_t end, std::span<std::byte> out)>;
  void fill(uint64_t offset, int64_t elements, int element_bytes,
            const Write& write) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

SharedMemory make_shared(const Group& group, uint64_t bytes);

// Inputs that outlive a case, weights above all: made once for a key ("glm53
// index layer 1 q_a"), kept until the group is left. Every rank asks for the
// same keys in the same order.
class SharedInputs {
 public:
  explicit SharedInputs(Group group) : group_(std::move(group)) {}
  // The bytes under `key`; the first call makes them with SharedMemory::fill.
  std::span<const std::byte> get(const std::string& key, int64_t elements,
                                 int element_bytes,
                                 const SharedMemory::Write& write);
  void clear() { held_.clear(); }

 private:
  Group group_;
  std::map<std::string, SharedMemory>
      held_;  // destroyed in key order, the same on every rank
};

}  // namespace exact_topk::harness
