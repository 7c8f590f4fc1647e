// SPDX-License-Identifier: Apache-2.0
//
// The command line that runs one case again, alone: the least mpirun that makes
// its group, the case options that select it and the settings that are not
// default. Files that a run writes are left out, and paths are quoted for a
// shell.
#pragma once

#include <string>

#include "cases/case.h"
#include "harness/group.h"
#include "harness/settings.h"

namespace exact_topk::harness {

std::string repro_line(const cases::Case& item, const Settings& settings,
                       const Group& group);

// The line that checks the capture of the settings again.
std::string capture_repro_line(const Settings& settings, const Group& group);

}  // namespace exact_topk::harness
