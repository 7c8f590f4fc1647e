// SPDX-License-Identifier: Apache-2.0
//
// A plug-in that says it selects and lacks xtk_select.

#include <cstdint>

namespace {
constexpr uint32_t kVersion = 1;
}

#include "tests/kernels/plugins/plugin.h"

namespace {
xtk_status open_plugin() { return XTK_OK; }
}  // namespace
