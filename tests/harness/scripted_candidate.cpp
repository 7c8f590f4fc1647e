// SPDX-License-Identifier: Apache-2.0
//
// A selector whose replays take what a script says: EXACT_TOPK_SCRIPT holds the
// microseconds of one replay after another, in words. Its arms are a and b; it
// has no part but the whole.
#include <cstdlib>
#include <sstream>

#include "kernels/candidate.h"

struct xtk_candidate {
  std::istringstream script;
};

uint32_t xtk_abi_version() { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* d) {
  static const char* const arms[] = {"a", "b", nullptr};
  d->name = "scripted";
  d->version = "1";
  d->device = "cpu";
  d->stages = XTK_STAGE_SELECT;
  d->contract = "valid";
  d->arms = arms;
  return XTK_OK;
}

xtk_status xtk_open(const xtk_open_options*, xtk_candidate** candidate) {
  *candidate =
      new xtk_candidate{std::istringstream(std::getenv("EXACT_TOPK_SCRIPT"))};
  return XTK_OK;
}

const char* xtk_last_error(const xtk_candidate*) { return "no more script"; }
void xtk_close(xtk_candidate* candidate) { delete candidate; }

xtk_status xtk_select(xtk_candidate*, const xtk_select_args*) { return XTK_OK; }

xtk_status xtk_replay(xtk_candidate* candidate, const xtk_replay_args* args,
                      double* microseconds) {
  if (args->part != nullptr) return XTK_UNSUPPORTED;
  return candidate->script >> *microseconds ? XTK_OK : XTK_FAILED;
}
