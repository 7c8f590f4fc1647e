// SPDX-License-Identifier: Apache-2.0
//
// A candidate that is our own until it goes wrong, as strangers' libraries do.
// It passes every call on to exact_topk_cpu.so, except that on the rank
// ROGUE_RANK the call ROGUE_CALL ("launch", "open", "describe" ...) ends in the
// way that ROGUE_HOW names; and except that with ROGUE_DEVICES it claims to be
// that many devices, and writes the ordinal that it is opened with to the file
// ROGUE_LOG and the rank's number.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/candidate.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void fall_over(const std::string& how) {
  static volatile int* nowhere = nullptr;
  if (how == "segv") *nowhere = 1;
  if (how == "abort") std::abort();
  if (how == "fpe") raise(SIGFPE);
  if (how == "ill") __builtin_trap();
  if (how == "term") raise(SIGTERM);
  if (how == "kill") raise(SIGKILL);
  if (how == "exit0") std::exit(0);
  if (how == "exit3") std::exit(3);
  if (how == "_exit0") _exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "terminate") std::terminate();
  if (how == "throw") throw std::runtime_error("thrown by the plug-in");
  if (how == "hang")
    while (true) pause();
}

void maybe_go_wrong(std::string_view call) {
  static const std::string how = variable("ROGUE_HOW"),
                           where = variable("ROGUE_CALL"),
                           on = variable("ROGUE_RANK");
  const std::string rank = variable("OMPI_COMM_WORLD_RANK");
  if (call == where && (on.empty() || on == rank)) fall_over(how);
}

template <typename Function>
Function* original(const char* name) {
  static void* library = dlopen(EXACT_TOPK_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// Passes `xtk_NAME` on.
#define FORWARD(NAME, ...) \
  maybe_go_wrong(#NAME);   \
  return original<decltype(xtk_##NAME)>("xtk_" #NAME)(__VA_ARGS__)

extern "C" {
uint32_t xtk_abi_version(void) {
  if (variable("ROGUE_HOW") == "version") return XTK_ABI_VERSION + 1;
  FORWARD(abi_version);
}
xtk_status xtk_describe(xtk_description* d) {
  if (const std::string devices = variable("ROGUE_DEVICES"); !devices.empty()) {
    const xtk_status status =
        original<decltype(xtk_describe)>("xtk_describe")(d);
    d->device = "abacus";
    d->devices = std::stoi(devices);
    return status;
  }
  FORWARD(describe, d);
}
xtk_status xtk_open(const xtk_open_options* o, xtk_candidate** c) {
  if (variable("ROGUE_HOW") == "no device") return XTK_NO_DEVICE;
  if (const std::string log = variable("ROGUE_LOG"); !log.empty()) {
    std::ofstream(log + variable("OMPI_COMM_WORLD_RANK")) << o->device;
    xtk_open_options first = *o;
    first.device = 0;  // the one that there is
    FORWARD(open, &first, c);
  }
  FORWARD(open, o, c);
}
const char* xtk_last_error(const xtk_candidate* c) {
  if (variable("ROGUE_HOW") == "no device") return "no such device is here";
  FORWARD(last_error, c);
}
void xtk_close(xtk_candidate* c) { FORWARD(close, c); }
uint64_t xtk_tensor_bytes(const xtk_candidate* c, xtk_tensor t) {
  FORWARD(tensor_bytes, c, t);
}
xtk_status xtk_write(xtk_candidate* c, xtk_tensor t, int32_t layer,
                     uint64_t offset, uint64_t bytes, const void* s) {
  FORWARD(write, c, t, layer, offset, bytes, s);
}
xtk_status xtk_read(xtk_candidate* c, xtk_tensor t, int32_t layer,
                    uint64_t offset, uint64_t bytes, void* d) {
  FORWARD(read, c, t, layer, offset, bytes, d);
}
const void* xtk_view(xtk_candidate* c, xtk_tensor t, int32_t layer) {
  FORWARD(view, c, t, layer);
}
xtk_status xtk_launch(xtk_candidate* c, const xtk_launch_args* a) {
  FORWARD(launch, c, a);
}
xtk_status xtk_wait(xtk_candidate* c) { FORWARD(wait, c); }
xtk_status xtk_select(xtk_candidate* c, const xtk_select_args* a) {
  FORWARD(select, c, a);
}
xtk_status xtk_score(xtk_candidate* c, const xtk_score_args* a) {
  FORWARD(score, c, a);
}
}
