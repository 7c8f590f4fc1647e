// SPDX-License-Identifier: Apache-2.0
//
// Where and with what a run is made: the "environment" of a report and the
// identity of a digest tree.
#pragma once

#include <string>
#include <vector>

namespace exact_topk::harness {

struct Environment {
  std::string host;    // name of rank 0's machine
  int ranks = 1;       // of the world
  std::string commit;  // that the program was built from, with "+changes" where
                       // files differed; "unknown" outside git
  std::string compiler;  // that built it
  std::string mpi;       // library and version that runs it
  std::string binding;   // processors that each rank of this node may use,
                         // "0:0-1 1:2,3"; collective to find out
  std::vector<std::string> devices;  // that each rank was bound to, "rank 3 ->
                                     // device 1 of 2 (nvidia)"; none on the CPU
};

// Collective over the world.
Environment environment();

}  // namespace exact_topk::harness
