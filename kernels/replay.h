// SPDX-License-Identifier: Apache-2.0
#pragma once

// Timing by replay (xtk_replay): the mean time of some work of a stream.
//
// On a GPU the replays are captured into one graph, so that nothing of the host
// lies between them, and the graph is launched once between two events: the
// head arm's launches carry a tag each and must not run twice. Another graph
// warms up first. Cold replays each follow a store to twice the bytes of the
// L2, and the time of such stores alone is taken off. The simulator has no
// graphs; there the work is started again and again.

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/hip/hip.h"

namespace exact_topk::kernels {

struct ReplayRequest {
  std::function<void()> start;  // starts the work on the stream, or throws
  hipStream_t stream;           // in order
  int replays;                  // at least 1
  bool cold;                    // evict the L2 before each
  int device;                   // whose L2
};

// Replays made ready to be timed, once.
class Replay {
 public:
  // Warms up and captures. Throws Failure.
  explicit Replay(const ReplayRequest& request);
  ~Replay();
  Replay(Replay&& other) noexcept;
  Replay& operator=(Replay&& other) noexcept;

  // Mean microseconds of a replay. Throws Failure. Called once.
  double microseconds();

 private:
  struct State;
  std::unique_ptr<State> state_;  // what is captured
};

}  // namespace exact_topk::kernels
