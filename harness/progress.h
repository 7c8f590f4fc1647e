// SPDX-License-Identifier: Apache-2.0
//
// How far a run is, on standard error: a bar that redraws itself on a terminal,
// elsewhere a line now and then, so that logs stay short. Results never go
// here.
#pragma once

#include <chrono>
#include <string>

namespace exact_topk::harness {

class Progress {
 public:
  // A run of `cases` cases; one rank of the world is `shown`.
  Progress(int cases, bool shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `taken` cases have been handed out, the last of them `name`.
  void update(int taken, const std::string& name);
  // Takes the bar away, so that something else can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  int cases_;                // in all
  bool shown_;               // whether this rank shows it
  bool terminal_;            // whether standard error is one
  bool drawn_ = false;       // whether a bar is on the screen
  Clock::time_point begin_;  // of the run
  Clock::time_point said_;   // when the last line was written, off a terminal
};

}  // namespace exact_topk::harness
