// SPDX-License-Identifier: Apache-2.0
//
// case.h - what one case is, and its name.
//
// A case is a point of the cross product of the case options (options.h), made
// by expand() or read_suite(). Its name says everything that changes its
// inputs, apart from the seed:
//
//     kind=index/tp=8/rows=4/cache=ties/rowset=chain/pos=131071            a
//     launch rows=4/cache=ties/rowset=chain/pos=8447/stage=score/fill=integers
//     scoring alone rows=4/pos=8447/stage=select/family=rising selecting alone
//
// followed, in this order and only where not the default, by geometry (preset
// or file stem), rope, hadamard, scale, fp8, page-layout, k, launches, steps,
// order, stage, family, fill. Keys without a meaning for the stage are left
// out: scoring alone knows no kind, T, launches or steps, selecting alone only
// rows, pos, k and family; the model's order has kinds of its own. The name is
// the filter (fnmatch over the whole of it), the dump path, and, without tp,
// the root of the generator's counters for rows and caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/geometry.h"

namespace exact_topk::cases {

// How hidden states reach the indexer: SPEC section 3, stage 1.
enum class Kind { kIndex, kDense, kEmbed };

// What is run of the launch: all of it, the scores alone, the list alone.
enum class Stage { kLaunch, kScore, kSelect };

inline constexpr int64_t kMaxKeys =
    (int64_t{1} << 20) + 64;  // most keys that a row may see
inline constexpr int64_t kDefaultPosition = 8447;
inline constexpr int kDefaultLaunches = 2;
inline constexpr int kDefaultSteps = 2;
inline constexpr const char* kDefaultGeometry = "glm53";

struct Case {
  Stage stage = Stage::kLaunch;  // what is run
  Kind kind = Kind::kIndex;      // of a launch: where h comes from
  int tp = 8;  // T: partial sums, and ranks that must agree; 1 but for a launch
  int rows = 4;                    // W: step rows, 1..8
  std::string cache = "random";    // name of an entry of caches()
  std::string rowset = "serving";  // name of an entry of row_sets()
  int64_t pos = kDefaultPosition;  // P: position of the last row on step 0;
                                   // select: the first row has P + 1 scores
  oracle::Geometry geometry = oracle::glm53();  // with the switches applied
  oracle::Geometry unswitched =
      oracle::glm53();  // as the preset or file gives it
  std::string geometry_option =
      kDefaultGeometry;  // preset, or the file's path as it was given
  int launches =
      kDefaultLaunches;       // layers, each with its own weights and cache
  int steps = kDefaultSteps;  // decode steps, each launched on every layer
  std::string fill;           // of scoring alone: "" or "integers"
  std::string family;  // of selecting alone: name of an entry of families()
  std::string order;   // of launches: "" or "model" (order.h)

  bool integers() const { return fill == "integers"; }
  bool operator==(const Case&) const = default;
};

// The unique name.
std::string name(const Case& c);

// The name without `tp=T`: what the inputs depend on.
std::string input_name(const Case& c);

// The case options, as an argument list, that select exactly this case:
// non-defaults only, and those whose default is a list or depends on the number
// of ranks (--rows, --cache, --rowset, --rows-from, --tp).
std::vector<std::string> repro_arguments(const Case& c);

// Whether the fnmatch pattern matches the whole name; `*` crosses slashes.
bool matches(const std::string& filter, const std::string& case_name);

}  // namespace exact_topk::cases
