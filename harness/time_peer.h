// SPDX-License-Identifier: Apache-2.0
//
// Peers: libraries that only select (--peer), timed on the very scores that a
// launch of the judged candidate left, in the same run and by the same passes.
// A peer's lists are held to what it promises, before and after its replays;
// its scores are not its own, so nothing else of it is judged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cases/plan.h"
#include "harness/case_context.h"
#include "harness/launch_outputs.h"
#include "harness/timing.h"

namespace exact_topk::harness {

// The name of its file, without folder and ending: what its arms are called by.
std::string peer_name(const Library& peer);

// Times the selection of the live rows of `step` by every arm of the peer.
// `page_table` is the step's. What is wrong with its lists is recorded as the
// check "peer", a call that failed as "launch", a clock that denies its word as
// "wall time". Collective.
std::vector<PartTime> time_peer(const Library& peer, const CaseContext& context,
                                const cases::Step& step,
                                const LaunchOutputs& outputs,
                                std::span<const int32_t> page_table,
                                CheckLog& log);

}  // namespace exact_topk::harness
