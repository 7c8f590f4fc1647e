// SPDX-License-Identifier: Apache-2.0
//
// A candidate's shared library: found, opened, its version checked before
// anything else of it is called, its description read and the functions that
// its stages need looked up (kernels/candidate.h).
//
// Names stand for our own candidates, which lie beside the program: ../lib in
// the build tree, ../lib/exact_topk when installed. "auto" is the first of amd,
// nvidia and cpu that is built and finds a device. Anything else is a path and
// a foreign library: what goes wrong inside its calls is its own fault
// (failure.h).
//
// Every fault of a library is a UsageError of one sentence with the path and
// what is wrong. Opened candidates (open_candidate.h) keep the library loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/failure.h"
#include "kernels/candidate.h"

namespace exact_topk::harness {

// A call that a candidate answered with something else than XTK_OK.
struct CandidateError : std::runtime_error {
  CandidateError(xtk_status s, const std::string& sentence)
      : std::runtime_error(sentence), status(s) {}
  xtk_status status;  // XTK_NO_DEVICE ends the run with 77
};

// What a candidate says of itself, copied out of its library.
struct Description {
  std::string name;         // "exact-topk cpu"
  std::string version;      // "0.1.0"
  std::string device;       // "cpu", "nvidia", "amd" ...
  uint32_t stages = 0;      // xtk_stage bits
  uint32_t wave_sizes = 0;  // 32, 64 or 96 (both); 0: no say
  uint64_t published = 0;   // bit t: tensor t can be read after a launch
  bool clobbers_score_tail = false;  // may write scores at and past n
  bool repeatable = false;           // claims the same bits in every replay
  int devices = 0;                   // visible now; 0: unknown
  std::string contract;              // what its lists promise
  std::vector<std::string> arms;     // the first is the default
};

// The functions of a library; those that its stages do not need may be null.
struct Functions {
  decltype(&xtk_abi_version) abi_version = nullptr;
  decltype(&xtk_describe) describe = nullptr;
  decltype(&xtk_open) open = nullptr;
  decltype(&xtk_last_error) last_error = nullptr;
  decltype(&xtk_close) close = nullptr;
  decltype(&xtk_tensor_bytes) tensor_bytes = nullptr;
  decltype(&xtk_write) write = nullptr;
  decltype(&xtk_read) read = nullptr;
  decltype(&xtk_launch) launch = nullptr;
  decltype(&xtk_wait) wait = nullptr;
  decltype(&xtk_score) score = nullptr;
  decltype(&xtk_select) select = nullptr;
  decltype(&xtk_view) view = nullptr;
  decltype(&xtk_replay) replay = nullptr;
  decltype(&xtk_witness) witness = nullptr;
  decltype(&xtk_prepare_replay) prepare_replay = nullptr;
};

// The libraries that Library::open may look at.
std::vector<std::string> candidate_files(const std::string& candidate);

class Library {
 public:
  // `candidate` is a name or a path; `timeout_seconds` bounds each call into
  // the library.
  static Library open(const std::string& candidate, double timeout_seconds);

  const Description& describe() const;
  const std::string& path() const;
  bool foreign() const;  // given by a path
  const Functions& functions() const;
  double timeout() const;  // seconds

  // Runs `body` as the call `name` of this library: guarded against signals,
  // exits and hangs, and an exception that comes out of it is a
  // CandidateError.
  template <typename Body>
  std::invoke_result_t<Body> call(const char* name, Body&& body) const {
    try {
      const PluginCall guard(path().c_str(), name, foreign(), timeout());
      return body();
    } catch (const std::exception& error) {
      throw threw(name, error.what());
    } catch (...) {
      throw threw(name, "something that is no std::exception");
    }
  }

 private:
  struct State;
  explicit Library(std::shared_ptr<State> state) : state_(std::move(state)) {}
  CandidateError threw(const char* name, const std::string& what) const;

  std::shared_ptr<State> state_;  // shared with open candidates
};

}  // namespace exact_topk::harness
