// SPDX-License-Identifier: Apache-2.0
//
// A plug-in whose xtk_open fails with a sentence.

#include <cstdint>

namespace {
constexpr uint32_t kVersion = 1;
}

#include "tests/kernels/plugins/plugin.h"

namespace {
xtk_status open_plugin() {
  plugin_error = "the cupboard is bare: 0 of 3 shelves hold anything";
  return XTK_FAILED;
}
}  // namespace

xtk_status xtk_select(xtk_candidate*, const xtk_select_args*) { return XTK_OK; }
