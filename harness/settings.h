// SPDX-License-Identifier: Apache-2.0
//
// What a run was asked to do, besides which cases: the part of the command line
// that case names do not hold (SPEC section 5). The defaults are the program's.
// options.h fills it; the engine and the judging read it, and nothing changes
// it during a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/timing.h"
#include "oracle/contract.h"

namespace exact_topk::harness {

// One bit of one input tensor, flipped before its launch (--perturb). Written
// launch0/step0/in/TENSOR:ELEMENT:BIT; a weight, which has no step, may also be
// written as its leaf is named, launch0/in/TENSOR:ELEMENT:BIT.
struct Perturb {
  int launch = 0;  // launch that reads the flipped bit
  int step = 0;    // step that first reads it; -1 where the step was left out
  std::string
      tensor;  // name of the input, as the leaves of a digest tree have
               // it, or "cache": the cache's bytes as they lie in memory
  int64_t element = 0;  // element of the tensor, row-major
  int bit = 0;          // bit of the element, 0 the lowest
};

struct Settings {
  std::string candidate =
      "cpu";        // cpu, nvidia, amd, auto or a path to a FILE.so
  std::string arm;  // as given to --arm; empty: the candidate's default
  std::vector<std::string> arms;  // those, in order; of the default empty until
                                  // the candidate is known
  uint64_t seed = 1;              // of every input, poison and pattern
  double bound = 1e-4;            // largest score error over the row's largest
                                  // |reference|, in [0, 0.5)
  std::optional<oracle::Contract> contract;  // --contract; nothing: what the
                                             // candidate or capture claims
  oracle::ValueRules values;  // --nan, --zeros: how scores rank in lists
  std::string capture;        // --capture FILE, empty: cases are run
  bool query_fp8 = false;     // --query fp8: scoring alone, with both queries
  std::string shrink;         // --shrink FILE, empty: no failed row is shrunk
  int repeat = 1;  // how often a launch is repeated to compare bits, a case
  int wave = 0;    // wave size, 64 or 32; 0: the candidate's default
  int blocks = 0;  // persistent blocks; 0: the candidate's default
  std::string
      schedule;  // order of a simulated device; empty: the candidate's default
  std::optional<Perturb> perturb;  // one flipped input bit
  std::string dump;                // DIR of the digest tree, empty: none
  bool dump_tensors = false;       // whether the tree holds the tensors too
  bool force = false;              // whether an existing DIR is replaced
  std::string json;                // path of the JSON report, empty: none
  std::string junit;               // path of the JUnit report, empty: none
  std::vector<std::filesystem::path>
      inputs;             // files that the run reads: no report may replace one
  double timeout = 1800;  // seconds that one call into a candidate may take
  int device = 0;  // this rank's number on its node, which chooses its device
                   // (binding.h)
  bool fail_fast = false;          // no new case starts after one that failed
  bool allow_mistrusted = false;   // MISTRUSTED does not fail the run
  std::optional<Timing> timing;    // time_topk: what to time after judging
  std::string csv;                 // time_topk: path of its table, empty: none
  std::vector<std::string> peers;  // time_topk: selectors to time beside it
};

// The contract that lists are held to: the one asked for, else what is claimed.
// UsageError where it is base, which knows no rules of values, and there are
// any.
oracle::Contract contract_of(const Settings& settings,
                             oracle::Contract claimed);

}  // namespace exact_topk::harness
