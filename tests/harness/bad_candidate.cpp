// SPDX-License-Identifier: Apache-2.0
//
// Candidates that cannot be used, one a definition BAD_...: a wrong version,
// missing symbols, descriptions without sense, no device.
#include <stdexcept>

#include "kernels/candidate.h"

#ifndef BAD_NO_VERSION
uint32_t xtk_abi_version(void) {
#ifdef BAD_WRONG_VERSION
  return XTK_ABI_VERSION + 6;
#else
  return XTK_ABI_VERSION;
#endif
}
#endif

xtk_status xtk_describe(xtk_description* d) {
  static const char* const arms[] = {"base", nullptr};
  d->name = "bad";
  d->version = "1";
  d->device = "cpu";
  d->contract = "base";
  d->stages = XTK_STAGE_SELECT;
  d->arms = arms;
#ifdef BAD_NO_STAGE
  d->stages = 0;
#endif
#ifdef BAD_NO_ARM
  d->arms = nullptr;
#endif
#ifdef BAD_UNKNOWN_CONTRACT
  d->contract = "mostly right";
#endif
  return XTK_OK;
}

#ifndef BAD_NO_OPEN
xtk_status xtk_open(const xtk_open_options*, xtk_candidate** candidate) {
  *candidate = nullptr;
#ifdef BAD_NO_DEVICE
  return XTK_NO_DEVICE;
#elif defined(BAD_OPEN_THROWS)
  throw std::runtime_error("thrown on purpose");
#else
  return XTK_FAILED;
#endif
}
#endif

const char* xtk_last_error(const xtk_candidate*) { return "there is a reason"; }
void xtk_close(xtk_candidate*) {}

#ifndef BAD_NO_SELECT
xtk_status xtk_select(xtk_candidate*, const xtk_select_args*) { return XTK_OK; }
#endif
