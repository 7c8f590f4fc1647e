// SPDX-License-Identifier: Apache-2.0
//
// exact_topk_failing_rank RANK HOW: a program under the harness's guards whose
// rank RANK ends in the way HOW, while the others wait for it in a barrier.
// Stands for a fault of the harness itself.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/failure.h"

namespace {

int recurse(int depth) {
  volatile char here[4096];
  here[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + here[0];
}

void go_wrong(const std::string& how) {
  using exact_topk::harness::PluginCall;
  static volatile int* nowhere = nullptr;
  if (how == "exception")
    throw std::runtime_error("something is wrong with this rank");
  if (how == "terminate") std::terminate();
  if (how == "thread")
    std::thread([] { throw std::runtime_error("thrown in a thread"); }).join();
  if (how == "segv") *nowhere = 1;
  if (how == "stack") recurse(0);
  if (how == "abort") std::abort();
  if (how == "fpe") raise(SIGFPE);
  if (how == "bus") raise(SIGBUS);
  if (how == "ill") __builtin_trap();
  if (how == "term") raise(SIGTERM);
  if (how == "kill") raise(SIGKILL);
  if (how == "exit0") std::exit(0);
  if (how == "exit3") std::exit(3);
  if (how == "_exit0") _exit(0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "own hang") {
    const PluginCall call("exact_topk_cpu.so", "xtk_launch", false, 0.2);
    while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace exact_topk::harness;
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  failure::install(rank, ranks);
  try {
    if (rank == std::atoi(argv[1])) go_wrong(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    failure::leave(0);
  } catch (const std::exception& error) {
    failure::fail(2, error.what());
  }
}
