// SPDX-License-Identifier: Apache-2.0
//
// A plug-in for a device that is not here.

#include <cstdint>

namespace {
constexpr uint32_t kVersion = 1;
}

#include "tests/kernels/plugins/plugin.h"

namespace {
xtk_status open_plugin() {
  plugin_error = "no abacus is here";
  return XTK_NO_DEVICE;
}
}  // namespace

xtk_status xtk_select(xtk_candidate*, const xtk_select_args*) { return XTK_OK; }
