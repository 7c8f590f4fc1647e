// SPDX-License-Identifier: Apache-2.0
//
// Where results go. compare_dumps writes its own in the same way, so the
// writing lies in dumps/.
#pragma once

#include "dumps/report_file.h"

namespace exact_topk::harness {

using dumps::print;
using dumps::ReportFile;

}  // namespace exact_topk::harness
