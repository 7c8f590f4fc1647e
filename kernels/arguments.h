// SPDX-License-Identifier: Apache-2.0
#pragma once

// What callers may pass. Each function throws Failure with one sentence for the
// first argument that is out of range, and changes nothing; what passes here
// cannot send a kernel out of its buffers.

#include "kernels/candidate.h"

namespace exact_topk::kernels {

inline constexpr int kMostCalls = 64;  // calls of a stage that a replay repeats

void check_open(const xtk_open_options* options, int devices);
// `options` are those that the candidate was opened with.
void check_launch(const xtk_launch_args* args, const xtk_open_options& options);
void check_select(const xtk_select_args* args);
void check_score(const xtk_score_args* args);
// Returns them whole: what the caller's version does not have is filled in.
xtk_replay_args check_replay(const xtk_replay_args* args);

}  // namespace exact_topk::kernels
