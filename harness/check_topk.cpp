// SPDX-License-Identifier: Apache-2.0
//
// check_topk: judges a sparse-attention indexer entry by entry (SPEC sections 6
// and 7). Everything is in the library; main only brings up MPI and the guards,
// and takes the one way out.
#include <mpi.h>

#include <exception>
#include <string>
#include <vector>

#include "dumps/sentence.h"
#include "harness/engine.h"
#include "harness/failure.h"
#include "harness/status.h"

int main(int argc, char** argv) {
  using namespace exact_topk::harness;
  int thread_level = 0, rank = 0, ranks = 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &thread_level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  failure::install(rank, ranks);
  try {
    const int status =
        run(parse_options(std::vector<std::string>(argv + 1, argv + argc)));
    MPI_Finalize();
    failure::leave(status);
  } catch (const std::exception& error) {
    failure::fail(kErrorStatus, exact_topk::dumps::sentence_of(error));
  }
}
