// SPDX-License-Identifier: Apache-2.0
//
// compare_dumps A B [--json FILE] [--all]: compares two digest trees. Exit
// status 0 equal, 1 differ, 2 not comparable or could not run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "dumps/compare.h"
#include "dumps/compare_report.h"
#include "dumps/paths.h"
#include "dumps/report_file.h"
#include "dumps/sentence.h"
#include "dumps/tree_reader.h"

namespace {

using namespace exact_topk::dumps;

constexpr int kEqual = 0;
constexpr int kDiffer = 1;
constexpr int kNotComparable = 2;

struct Options {
  std::string a, b;  // the two trees
  std::string json;  // where the JSON report goes; empty for none
  bool all = false;  // list every differing leaf, not only the first
};

// Not fmt::print, which throws where standard error cannot be written either.
void complain(const std::exception& error) {
  std::fputs(fmt::format("compare_dumps: {}\n", sentence_of(error)).c_str(),
             stderr);
}

// Where the JSON report goes, if it is asked for: never into a tree, whose
// files all count.
std::optional<ReportFile> open_json(const Options& options) {
  if (options.json.empty()) return std::nullopt;
  for (const std::string& tree : {options.a, options.b})
    if (lies_in(options.json, tree))
      throw std::runtime_error(
          fmt::format("--json {} cannot be written: it lies in the tree {}",
                      options.json, tree));
  return ReportFile("--json", options.json);
}

struct Outcome {
  int status;                   // of the program
  nlohmann::ordered_json json;  // the report
};

// Compares and prints the text report.
Outcome compare(const Options& options) {
  try {
    const Tree a = read_tree(options.a);
    const Tree b = read_tree(options.b);
    const Comparison comparison = compare_trees(a, b);
    print(text_report(comparison, a, b, options.all));
    return {comparison.equal() ? kEqual : kDiffer,
            json_report(comparison, a, b, options.all)};
  } catch (const std::exception& error) {
    complain(error);
    return {kNotComparable,
            json_not_comparable(options.a, options.b, sentence_of(error))};
  }
}

int run(const Options& options) {
  const std::optional<ReportFile> json = open_json(options);
  const Outcome outcome = compare(options);
  if (json)
    json->write(
        outcome.json.dump(2, ' ', false,
                          nlohmann::ordered_json::error_handler_t::replace) +
        "\n");
  return outcome.status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Compares two digest trees bit for bit: exit status 0 equal, 1 differ, 2 "
      "not comparable.");
  app.add_option("A", options.a, "a tree that check_topk --dump wrote")
      ->required();
  app.add_option("B", options.b, "another of the same seed and geometry")
      ->required();
  app.add_option("--json", options.json,
                 "write the report as JSON to this file");
  app.add_flag("--all", options.all,
               "list every differing leaf, in execution order");
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      print(app.help());
      return kEqual;
    }
    return run(options);
  } catch (const std::exception& error) {
    complain(error);
    return kNotComparable;
  }
}
