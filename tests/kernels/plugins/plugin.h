// SPDX-License-Identifier: Apache-2.0
#pragma once

// The least that a select-only library exports, for plug-ins that are wrong in
// one way each. A plug-in defines what is its own before it includes this:
// kVersion, what it says its ABI is, and open_plugin(), what its xtk_open does.

#include "kernels/candidate.h"

namespace {
const char* const kPluginArms[] = {"only", nullptr};
const char* plugin_error = "";  // what xtk_last_error says
xtk_status open_plugin();
}  // namespace

uint32_t xtk_abi_version(void) { return kVersion; }

xtk_status xtk_describe(xtk_description* description) {
  *description = {.struct_size = description->struct_size,
                  .name = "a faulty plug-in",
                  .version = "0",
                  .device = "cpu",
                  .stages = XTK_STAGE_SELECT,
                  .wave_sizes = 0,
                  .published = 0,
                  .clobbers_score_tail = 0,
                  .repeatable = 0,
                  .contract = "set",
                  .arms = kPluginArms,
                  .devices = 0};
  return XTK_OK;
}

xtk_status xtk_open(const xtk_open_options*, xtk_candidate** candidate) {
  *candidate = nullptr;
  return open_plugin();
}

const char* xtk_last_error(const xtk_candidate*) { return plugin_error; }

void xtk_close(xtk_candidate*) {}
