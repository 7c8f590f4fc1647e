// SPDX-License-Identifier: Apache-2.0
//
// options.h - the case options: one table that command lines and suite files
// share.
//
// A program registers every entry of case_options() with its own parser and
// passes on the value as text; a suite line is parsed by parse_case_options().
// Both end in the same setters, so a bad value gives the same sentence, naming
// option and value, wherever it stands. An option that was not given stays
// empty here; expand() knows the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/case.h"

namespace exact_topk::cases {

// Case options as given. Lists are empty, and the others unset, where the
// option was not given.
struct CaseOptions {
  std::optional<Stage> stage;         // --stage
  std::vector<Kind> kinds;            // --kind
  std::optional<int> tp;              // --tp
  std::vector<int> rows;              // --rows
  std::vector<std::string> caches;    // --cache
  std::vector<std::string> rowsets;   // --rowset
  std::vector<int64_t> positions;     // --pos
  std::vector<std::string> families;  // --rows-from
  std::optional<std::string> fill;    // --fill
  std::optional<std::string> order;   // --order
  std::optional<int> launches;        // --launches
  std::optional<int> steps;           // --steps
  std::vector<int> k;                 // --k
  std::optional<std::string>
      geometry;  // --geometry: a preset or the path of a JSON file
  std::optional<oracle::Rope> rope;               // --rope
  std::optional<bool> hadamard;                   // --hadamard
  std::optional<oracle::Scale> scale;             // --scale
  std::optional<oracle::Fp8> fp8;                 // --fp8
  std::optional<oracle::PageLayout> page_layout;  // --page-layout
};

struct CaseOption {
  std::string_view name;   // "--pos"
  std::string_view value;  // what stands for the value in the help: "P,..."
  std::string_view help;   // one line
  void (*set)(CaseOptions& options,
              std::string_view text);  // throws std::invalid_argument: one
                                       // sentence naming option and value
};

// Every case option. --tp is among them, although a command line may give it
// beside a suite.
std::span<const CaseOption> case_options();

// Parses an argument list of case options alone: `--name value`, `--name
// v1,v2` or `--name=value`. Throws std::invalid_argument.
CaseOptions parse_case_options(std::span<const std::string> arguments);

// The parts of a list written with commas, empty ones included: one more than
// it has commas.
std::vector<std::string_view> split(std::string_view text);

// The sentence on a word that follows no option that takes it.
std::string stray_word(std::string_view word);

// The values that stand behind `option`, whatever else the arguments hold and
// whether or not they parse.
std::vector<std::string> values_of(std::span<const std::string> arguments,
                                   std::string_view option);

}  // namespace exact_topk::cases
