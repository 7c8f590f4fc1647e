// SPDX-License-Identifier: Apache-2.0
#pragma once

// An open candidate: its tensors, its scratch and what it did last.
// candidate.cpp is the ABI's border around it; everything here throws Failure.
//
// A call is a list of named parts, each a few kernels; replay runs the parts of
// the last call of a stage, or of the last few, again. Scratch is filled once,
// when the session opens, and never cleared.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/base_arm.h"
#include "kernels/candidate.h"
#include "kernels/head/head_arm.h"
#include "kernels/replay.h"
#include "kernels/tensors.h"

namespace exact_topk::kernels {

class Session {
 public:
  // Checks the options and takes the device.
  explicit Session(const xtk_open_options* options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Tensors& tensors() { return tensors_; }
  const Tensors& tensors() const { return tensors_; }
  void launch(const xtk_launch_args* args);
  void wait();
  void select(const xtk_select_args* args);
  void score(const xtk_score_args* args);
  // The paths of a row of the last launch or selection.
  xtk_witness_row witness(int row) const;
  // Makes a replay ready, so that the next of the same arguments only runs it.
  void prepare_replay(const xtk_replay_args* args);
  // Mean microseconds of a replay.
  double replay(const xtk_replay_args* args, const double* microseconds);
  // Of all that is held, and of what launches of an arm need.
  uint64_t scratch_bytes() const;
  uint64_t scratch_bytes(std::string_view arm) const;

 private:
  // A named piece of a call that can run by itself.
  struct Part {
    const char* name;                   // as xtk_replay_args.part spells it
    std::function<hipError_t()> start;  // starts its kernels
  };

  // A call: what it starts, and the same work cut into parts that can be
  // replayed one by one.
  struct Call {
    std::vector<Part> whole;  // in order
    std::vector<Part>
        pieces;  // "front", "key-and-query", "scoring", "selection"
  };

  // A replay that is ready, until another call comes. It is kept when it has
  // run: freeing a large graph takes time, which would count as the replay's.
  struct Prepared {
    int stage;         // of the call that it repeats
    std::string part;  // of the call; empty: the whole
    int replays;       // how often
    bool cold;         // whether the L2 is evicted before each
    int calls;         // last calls that one replay repeats
    Replay replay;     // ready
    bool spent;        // it has run

    bool is(const xtk_replay_args& args) const;
  };

  // What the last launch or selection worked on, for the witness; device
  // addresses.
  struct Witnessed {
    RowTables tables;         // its rows
    const int32_t* requests;  // [R] of a launch; nullptr of a selection
    const int32_t* slots;     // [R] of a launch
    bool grouped;             // whether rows were scored together
  };

  // What one replay starts, in order. Throws Failure where there is no such
  // call or part.
  std::vector<Part> replayed(const xtk_replay_args& args);
  Call launch_call(const xtk_launch_args& args);
  base::SelectOperands select_operands(const RowTables& rows, int k) const;
  head::Operands head_operands(const FrontOperands& front,
                               const ScoreOperands& score,
                               const base::SelectOperands& select) const;
  // Starts these parts of the head arm as one launch, which takes the next tag.
  hipError_t start_head(head::Operands operands, unsigned parts);
  void run(xtk_stage stage, Call call);
  // A staging buffer of exactly this size, kept while calls ask for the same.
  DeviceBuffer& staging(const char* name, uint64_t bytes);

  xtk_open_options
      options_;  // as opened; its schedule points to no memory of ours
  backend::Choices choices_;           // of this session's launches
  Geometry geometry_;                  // of the model
  Tensors tensors_;                    // of launches
  DeviceBuffer q_down_;                // scratch of the front
  DeviceBuffer slice_bins_;            // scratch of the selection
  DeviceBuffer sliced_;                // scratch of the selection
  DeviceBuffer candidates_;            // scratch of the selection
  DeviceBuffer paths_;                 // of the last selection's rows
  head::HandOffSizes hand_off_sizes_;  // of the head arm's tagged pairs
  DeviceBuffer hand_off_;              // the pairs; cleared once
  DeviceBuffer run_patched_;           // of the head arm's runs
  head::LdsPlan lds_;                  // of a block of the head arm
  uint32_t tag_ = 0;                   // of the last launch of the head arm
  base::Grid grid_;                    // how kernels are launched
  std::map<std::string, DeviceBuffer>
      staging_;  // arguments of select and score
  std::map<int, std::deque<Call>>
      last_;  // by stage, in order: kMostCalls launches, one of other calls
  std::optional<Prepared> prepared_;  // a replay that is ready
  Witnessed witnessed_{};  // what the last launch or selection worked on
};

}  // namespace exact_topk::kernels
