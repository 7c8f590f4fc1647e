// SPDX-License-Identifier: Apache-2.0
#include "harness/program.h"

#include <mpi.h>

#include <exception>
#include <string>
#include <vector>

#include "dumps/sentence.h"
#include "harness/engine.h"
#include "harness/failure.h"
#include "harness/status.h"

namespace exact_topk::harness {

void run_program(int argc, char** argv, Program program) {
  int thread_level = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &thread_level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  failure::install(rank, ranks);
  try {
    const int status = run(parse_options(
        std::vector<std::string>(argv + 1, argv + argc), program));
    MPI_Finalize();
    failure::leave(status);
  } catch (const std::exception& error) {
    failure::fail(kErrorStatus, dumps::sentence_of(error));
  }
}

}  // namespace exact_topk::harness
