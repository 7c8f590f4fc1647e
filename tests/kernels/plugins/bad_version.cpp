// SPDX-License-Identifier: Apache-2.0
//
// A plug-in built for a version of the ABI that does not exist.

#include <cstdint>

namespace {
constexpr uint32_t kVersion = 999;
}

#include "tests/kernels/plugins/plugin.h"

namespace {
xtk_status open_plugin() { return XTK_OK; }
}  // namespace

xtk_status xtk_select(xtk_candidate*, const xtk_select_args*) { return XTK_OK; }
