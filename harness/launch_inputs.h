// SPDX-License-Identifier: Apache-2.0
//
// The inputs of one launch case, once a group: the ranks of a node fill shares
// of shared memory and read the whole. Weights outlive the case (SharedInputs);
// caches and the rope table are made a case, the inputs of a step when it
// begins. A bit that --perturb names is flipped as its element is filled, so
// that candidate, reference and dump see the same bytes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cases/inputs.h"
#include "harness/group.h"
#include "harness/settings.h"

namespace exact_topk::harness {

class LaunchInputs {
 public:
  // Fills weights, rope table and caches. Collective.
  LaunchInputs(const cases::Case& item, const cases::Plan& plan,
               const Settings& settings, const Group& group,
               SharedInputs& weights);
  // Fills the inputs of a step, in place of the last one's. Collective.
  void load_step(int launch, int step);

  // A tensor as the step's launch reads it; layers are launches.
  std::span<const std::byte> bytes(cases::Input input, int launch) const;
  template <typename T>
  std::span<const T> as(cases::Input input, int launch) const {
    const auto raw = bytes(input, launch);
    return {reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)};
  }

  // The inputs that the case has.
  const std::vector<cases::Input>& used() const { return used_; }
  const cases::InputInfo& info(cases::Input input) const {
    return infos_[size_t(input)];
  }

 private:
  using Views = std::array<std::span<const std::byte>, cases::kInputs>;
  SharedMemory::Write writer(cases::Input input, int launch, int step) const;
  // One block with room for all `inputs`, filled; `views` point into it.
  struct Piece {
    cases::Input input;
    int launch;
  };
  SharedMemory make_block(std::span<const Piece> pieces, int step);

  const cases::Case& item_;
  const cases::Plan& plan_;
  const Settings& settings_;
  const Group& group_;
  std::optional<Perturb> perturb_;  // in an input of this case
  std::vector<cases::Input> used_;
  std::array<cases::InputInfo, cases::kInputs> infos_;
  std::vector<Views> views_;          // a launch
  std::optional<SharedMemory> case_;  // caches and rope table
  std::optional<SharedMemory> step_;  // of the step
};

}  // namespace exact_topk::harness
