// SPDX-License-Identifier: Apache-2.0
//
// The harness's words in the ABI's (kernels/candidate.h).
#pragma once

#include "cases/case.h"
#include "cases/inputs.h"
#include "cases/plan.h"
#include "harness/loader.h"
#include "harness/settings.h"
#include "kernels/candidate.h"

namespace exact_topk::harness {

xtk_geometry abi_geometry(const oracle::Geometry& geometry);
xtk_kind abi_kind(cases::Kind kind);
xtk_tensor abi_tensor(cases::Input input);
// Of a launch: T for kind index, 1 for dense, 0 for embed.
int abi_partials(const cases::Case& item, int launch);
// Options that fit the case's plan exactly, on the device that the rank is
// bound to (binding.h). `settings` must outlive them.
xtk_open_options abi_options(const cases::Case& item, const cases::Plan& plan,
                             const Settings& settings,
                             const Description& candidate);
// For selections of the case's rows alone: no cache, no tensors of a launch.
xtk_open_options abi_select_options(const cases::Case& item, int64_t max_keys,
                                    int64_t list_entries,
                                    const Settings& settings,
                                    const Description& candidate);

// The same for selecting alone, which has no cache and no tensors.
xtk_open_options abi_select_options(const cases::Case& item,
                                    int64_t list_entries,
                                    const Settings& settings,
                                    const Description& candidate);

}  // namespace exact_topk::harness
