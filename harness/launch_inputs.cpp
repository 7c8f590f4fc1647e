// SPDX-License-Identifier: Apache-2.0
#include "harness/launch_inputs.h"

#include <fmt/format.h>

#include "cases/order.h"
#include "harness/perturb.h"

namespace exact_topk::harness {
namespace {

using cases::Input;
using cases::Lifetime;

// What cases::fill makes a weight from, the seed aside.
std::string weight_key(const cases::Case& item, const cases::InputInfo& info,
                       int launch) {
  const oracle::Geometry& g = item.geometry;
  return fmt::format("{}/{}/{}/{}/{}/{}", g.hidden, g.q_lora, g.heads,
                     int(cases::kind_of(item, launch)), launch, info.name);
}

}  // namespace

LaunchInputs::LaunchInputs(const cases::Case& item, const cases::Plan& plan,
                           const Settings& settings, const Group& group,
                           SharedInputs& weights)
    : item_(item),
      plan_(plan),
      settings_(settings),
      group_(group),
      perturb_(settings.perturb ? in_input(*settings.perturb, item, plan)
                                : std::nullopt),
      views_(size_t(item.launches)) {
  std::vector<Piece> pieces;
  for (int i = 0; i < cases::kInputs; ++i) {
    const Input input{i};
    if (!cases::used(input, item)) continue;
    used_.push_back(input);
    const cases::InputInfo& about = infos_[size_t(i)] =
        cases::info(input, item, plan);
    for (int launch = 0; launch < item.launches; ++launch) {
      if (about.lifetime == Lifetime::kLayer && input != Input::kCache)
        views_[size_t(launch)][size_t(i)] = weights.get(
            weight_key(item, about, launch), about.elements(),
            cases::element_bytes(about.dtype), writer(input, launch, 0));
      else if (input == Input::kCache ||
               (about.lifetime == Lifetime::kCase && launch == 0))
        pieces.push_back({input, launch});
    }
  }
  case_.emplace(make_block(pieces, 0));
}

void LaunchInputs::load_step(int launch, int step) {
  std::vector<Piece> pieces;
  for (const Input input : used_)
    if (info(input).lifetime == Lifetime::kStep)
      pieces.push_back({input, launch});
  step_.reset();
  step_.emplace(make_block(pieces, step));
}

SharedMemory::Write LaunchInputs::writer(Input input, int launch,
                                         int step) const {
  return [this, input, launch, step](int64_t begin, int64_t end,
                                     std::span<std::byte> out) {
    cases::fill(input, item_, plan_, settings_.seed, launch, step, begin, end,
                out);
    const cases::InputInfo& about = info(input);
    if (perturb_ && perturbs(*perturb_, about, launch, step))
      flip(*perturb_, begin, cases::element_bytes(about.dtype), out);
  };
}

SharedMemory LaunchInputs::make_block(std::span<const Piece> pieces, int step) {
  constexpr uint64_t kAlignment = 64;
  std::vector<uint64_t> offsets;
  uint64_t total = 0;
  for (const Piece& piece : pieces) {
    offsets.push_back(total);
    total +=
        (info(piece.input).bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  SharedMemory block = make_shared(group_, total);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [input, launch] = pieces[i];
    const cases::InputInfo& about = info(input);
    block.fill(offsets[i], about.elements(), cases::element_bytes(about.dtype),
               writer(input, launch, step));
    views_[size_t(launch)][size_t(input)] =
        block.bytes().subspan(offsets[i], about.bytes);
  }
  return block;
}

std::span<const std::byte> LaunchInputs::bytes(Input input, int launch) const {
  const bool once = info(input).lifetime == Lifetime::kCase;
  return views_[once ? 0 : size_t(launch)][size_t(input)];
}

}  // namespace exact_topk::harness
