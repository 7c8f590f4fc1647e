// SPDX-License-Identifier: Apache-2.0
#include "harness/failure.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "harness/status.h"

namespace exact_topk::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWatchPeriod =
    std::chrono::milliseconds(50);  // how late a timeout may be seen
constexpr int kPatienceSeconds =
    30;  // for the report of a failure, ours or another rank's, before a rank
         // leaves without it

// Every signal that ends a process and can be caught. SIGPIPE and SIGXFSZ are
// ignored instead: the write that meets them reports.
constexpr std::array kSignals = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,
                                 SIGTRAP, SIGSYS,  SIGTERM, SIGINT,  SIGHUP,
                                 SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM,
                                 SIGPROF, SIGXCPU};

enum class Stage : int { kRunning, kFailing, kLeaving };

// All of it is read by signal handlers and the failure thread, so it is plain
// storage and atomics.
std::atomic<Stage> stage{Stage::kRunning};
std::atomic<bool> call_active{false};
const char* call_library = "";
const char* call_name = "";
bool call_foreign = false;
double call_timeout = 0;
std::atomic<Clock::rep> call_deadline{0};

int failure_status = 0;
char failure_sentence[2048] = "";

int rank = 0, ranks = 1;
pid_t process = 0;  // that install() ran in; a forked child is on its own
pthread_t failure_thread{};
sem_t wake;
std::atomic<int> own_claim{0};
std::atomic<std::atomic<int>*> claim{&own_claim};
failure::Reporter reporter;

bool installed_here() { return process != 0 && process == getpid(); }

[[noreturn]] void wait_then_leave(int status) {
  timespec nap{kPatienceSeconds, 0};
  while (nanosleep(&nap, &nap) != 0 && errno == EINTR) {
  }
  failure::leave(status);
}

void speak() {
  char line[sizeof failure_sentence + 64];
  char who[32] = "";
  if (ranks > 1) std::snprintf(who, sizeof who, " rank %d:", rank);
  int length =
      std::snprintf(line, sizeof line, "%s:%s %s\n",
                    program_invocation_short_name, who, failure_sentence);
  length = std::min(length, static_cast<int>(sizeof line) - 1);
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
    // Nobody can be told; the status still stands.
  }
}

// On the failure thread: tell, write what can be written, leave.
[[noreturn]] void report() {
  if (claim.load()->exchange(1) != 0) wait_then_leave(failure_status);
  speak();
  try {
    if (reporter) reporter({failure_status, failure_sentence});
  } catch (const std::exception& error) {
    // An error has its one sentence, and a report only where it can be written;
    // a plug-in's failure owes one.
    if (failure_status != kErrorStatus) {
      std::snprintf(failure_sentence, sizeof failure_sentence,
                    "the report could not be written: %s", error.what());
      failure_status = kErrorStatus;
      speak();
    }
  }
  failure::leave(failure_status);
}

// The one way into a failure, safe in a signal handler. `sentence` may be
// anything; the first caller's stands.
[[noreturn]] void fail_from_here(int status, const char* sentence) {
  if (pthread_equal(pthread_self(), failure_thread))
    failure::leave(status);  // the report itself failed
  Stage expected = Stage::kRunning;
  if (stage.compare_exchange_strong(expected, Stage::kFailing)) {
    failure_status = status;
    std::snprintf(failure_sentence, sizeof failure_sentence, "%s", sentence);
    sem_post(&wake);
  }
  wait_then_leave(status);
}

// Composes the sentence on what happened, in a foreign call or outside one, and
// fails.
[[noreturn]] void fail_because(const char* what, bool may_be_plugin) {
  char sentence[1024];
  const bool in_call = call_active.load();
  const bool plugin = in_call && call_foreign && may_be_plugin;
  if (in_call)
    std::snprintf(sentence, sizeof sentence, "%s %s in %s",
                  plugin ? call_library : "this rank", what, call_name);
  else
    std::snprintf(sentence, sizeof sentence,
                  "this rank %s before the run was over", what);
  fail_from_here(plugin ? kFailedStatus : kErrorStatus, sentence);
}

void on_signal(int number, siginfo_t* info, void*) {
  if (!installed_here()) {
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  const bool from_outside = info->si_code <= 0 && info->si_pid != process &&
                            info->si_code != SI_TIMER;
  if (number == SIGTERM && from_outside && ranks > 1 &&
      info->si_pid == getppid())
    failure::leave(kErrorStatus);  // mpirun ends the run: the rank that made it
                                   // do so has spoken
  char what[128];
  const char* name = sigabbrev_np(number);
  std::snprintf(what, sizeof what, "was ended by SIG%s",
                name != nullptr ? name : "?");
  fail_because(what, !from_outside);
}

[[noreturn]] void on_terminate() {
  char what[768] = "called std::terminate";
  try {
    if (const std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::exception& error) {
    std::snprintf(what, sizeof what,
                  "called std::terminate for an exception (%s)", error.what());
  } catch (...) {
    std::snprintf(what, sizeof what,
                  "called std::terminate for an exception of an unknown type");
  }
  fail_because(what, true);
}

void on_early_exit(const char* function, int status) {
  if (!installed_here() || stage.load() == Stage::kLeaving) return;
  char what[64];
  std::snprintf(what, sizeof what, "called %s(%d)", function, status);
  fail_because(what, true);
}

void watch() {
  while (true) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += std::chrono::nanoseconds(kWatchPeriod).count();
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
    if (sem_timedwait(&wake, &until) == 0) report();
    if (!call_active.load() ||
        Clock::now().time_since_epoch().count() < call_deadline.load())
      continue;
    Stage expected = Stage::kRunning;
    if (!stage.compare_exchange_strong(expected, Stage::kFailing))
      continue;  // woken in a moment
    failure_status = call_foreign ? kFailedStatus : kErrorStatus;
    std::snprintf(failure_sentence, sizeof failure_sentence,
                  "%s did not return from %s within %g s (--timeout)",
                  call_library, call_name, call_timeout);
    report();
  }
}

}  // namespace

namespace failure {

void install(int world_rank, int world_size) {
  rank = world_rank;
  ranks = world_size;
  process = getpid();
  sem_init(&wake, 0, 0);

  // The failure thread takes no signal that is sent to the process, so that
  // handlers run where the fault is.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(watch);
  failure_thread = thread.native_handle();
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);

  static std::array<std::byte, 64 * 1024>
      signal_stack;  // a fault may be a stack that ran out
  stack_t stack{};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);

  std::set_terminate(on_terminate);
  on_exit([](int status, void*) { on_early_exit("exit", status); }, nullptr);
  at_quick_exit([] { fail_because("called quick_exit", true); });
}

void set_reporter(Reporter r) { reporter = std::move(r); }
void set_claim(std::atomic<int>* flag) {
  claim = flag != nullptr ? flag : &own_claim;
}

void fail(int status, const std::string& sentence) {
  fail_from_here(status, sentence.c_str());
}

void leave(int status) {
  stage = Stage::kLeaving;
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // namespace failure

PluginCall::PluginCall(const char* library, const char* call, bool foreign,
                       double timeout_seconds) {
  call_library = library;
  call_name = call;
  call_foreign = foreign;
  call_timeout = timeout_seconds;
  const auto allowed = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(timeout_seconds));
  call_deadline = (Clock::now() + allowed).time_since_epoch().count();
  call_active = true;
}

PluginCall::~PluginCall() {
  call_active = false;
  // The failure thread may have judged this call a moment ago: what it says
  // must stay true.
  if (stage.load() == Stage::kFailing) wait_then_leave(failure_status);
}

}  // namespace exact_topk::harness

// _exit runs no exit handlers, so the program has its own: a plug-in that calls
// it (its calls resolve to the program's) is seen like one that calls exit.
extern "C" {
void _exit(int status) {
  exact_topk::harness::on_early_exit("_exit", status);
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

void _Exit(int status) { _exit(status); }
}
