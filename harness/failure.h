// SPDX-License-Identifier: Apache-2.0
//
// How a rank that cannot go on ends the run: one sentence, one status, no hang.
//
// A fatal signal, std::terminate, an early exit() and an exception that leaves
// the engine all come to fail(). It hands the sentence to a thread of its own,
// started by install() (the failing thread may hold locks or have lost its
// stack), which calls the reporter once and leaves the process; mpirun then
// ends the other ranks and returns the same status. The first rank of a node to
// fail speaks, the others wait to be ended, so that a fault that all ranks
// share is one sentence.
//
// Whose fault it is. While a PluginCall of a foreign library is alive, a
// signal, an exit, a std::terminate and a call that outlasts the timeout are
// the plug-in's: status 1, a failed case. Everything else, our own candidates
// included, is status 2.
//
// Not seen: SIGKILL (mpirun ends the run with a status of its own), and exits
// by a raw system call.
#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace exact_topk::harness {

// A command line, file or environment that cannot be run: status 2 before the
// first case.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace failure {

struct Failure {
  int status;            // 1: the plug-in's, 2: ours
  std::string sentence;  // without the program's name or a newline
};

// Writes what can still be written of the run; must call no MPI. Called once,
// on the failure thread.
using Reporter = std::function<void(const Failure&)>;

// Installs signal handlers, the terminate handler, the exit hooks and the
// failure thread. Call after MPI_Init (Open MPI has handlers of its own), once.
// `world_rank` stands in the sentences where there is more than one rank.
void install(int world_rank, int world_size);
void set_reporter(Reporter reporter);
// A flag that the ranks of a node share: who sets it first speaks. Default: a
// flag of the process alone.
void set_claim(std::atomic<int>* claim);

// Ends the run from any thread, as described above.
[[noreturn]] void fail(int status, const std::string& sentence);

// The way out of main: leaves with `status` without running exit handlers, a
// plug-in's least of all.
[[noreturn]] void leave(int status);

}  // namespace failure

// Marks a call into a candidate, from construction to destruction. `library`
// and `call` ("xtk_launch") must outlive it. Nested calls are not meant. A C++
// exception that leaves the call passes through and is the caller's to catch.
class PluginCall {
 public:
  PluginCall(const char* library, const char* call, bool foreign,
             double timeout_seconds);
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;
  ~PluginCall();
};

}  // namespace exact_topk::harness
