// SPDX-License-Identifier: Apache-2.0
//
// An open candidate: the calls of kernels/candidate.h as methods over spans.
// Closed when destroyed. Every answer but XTK_OK is a CandidateError with the
// call and the candidate's own sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/loader.h"
#include "harness/timing.h"

namespace exact_topk::harness {

// What one replay took.
struct Clocked {
  double claimed = 0;  // microseconds, as the candidate says
  double wall = 0;     // microseconds that passed
};

// What one replay repeats.
struct Replayed {
  xtk_stage stage = XTK_STAGE_LAUNCH;
  int calls = 1;  // the last so many calls of the stage
};

class Candidate {
 public:
  Candidate(const Library& library, const xtk_open_options& options);
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;
  ~Candidate();

  uint64_t tensor_bytes(xtk_tensor tensor) const;
  void write(xtk_tensor tensor, int layer, uint64_t offset,
             std::span<const std::byte> bytes);
  void read(xtk_tensor tensor, int layer, uint64_t offset,
            std::span<std::byte> bytes);
  // The tensor's memory where it can be read in place, else null.
  const std::byte* view(xtk_tensor tensor, int layer);
  // The tensor's first `bytes` bytes: in place where that can be, else read
  // into `storage`. Valid until the next launch.
  std::span<const std::byte> look(xtk_tensor tensor, int layer, uint64_t bytes,
                                  std::vector<std::byte>& storage);

  // Launches and waits.
  void launch(const xtk_launch_args& args);
  void select(const xtk_select_args& args);
  void score(const xtk_score_args& args);
  // Of a row of the last launch or selection; empty where the candidate does
  // not export it.
  std::optional<xtk_witness_row> witness(int row);
  // That launches of an arm need; likewise.
  std::optional<uint64_t> scratch_bytes(const std::string& arm) const;
  // Microseconds of one replay, the mean of `replays`.
  double replay(const Replayed& what, const std::string& part, int replays,
                bool cold);
  // Replays it once to see; every candidate has the whole.
  bool has_part(const Replayed& what, const std::string& part);
  // Microseconds that warm replays of a whole take, each by the candidate's
  // word and by this process's clock.
  Clocked replay_by_clock(const Replayed& what, int replays);

 private:
  void check(const char* call, xtk_status status) const;

  Library library_;                     // keeps the code loaded
  xtk_candidate* candidate_ = nullptr;  // owned
};

}  // namespace exact_topk::harness
