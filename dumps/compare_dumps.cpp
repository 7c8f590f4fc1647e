// SPDX-License-Identifier: Apache-2.0
//
// compare_dumps A B [--json FILE] [--all]: compares two digest trees. Exit
// status 0 equal, 1 differ, 2 not comparable or could not run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "dumps/compare.h"
#include "dumps/compare_report.h"
#include "dumps/output_file.h"
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

void write_json(const Options& options, const nlohmann::ordered_json& report) {
  if (options.json.empty()) return;
  OutputFile file(options.json);
  file.write(report.dump(2, ' ', false,
                         nlohmann::ordered_json::error_handler_t::replace) +
             "\n");
  file.close(OutputFile::Sync::no);
}

int compare(const Options& options) {
  const Tree a = read_tree(options.a);
  const Tree b = read_tree(options.b);
  const Comparison comparison = compare_trees(a, b);
  write_json(options, json_report(comparison, a, b, options.all));
  const std::string text = text_report(comparison, a, b, options.all);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw std::runtime_error("cannot write the report to standard output");
  }
  return comparison.equal() ? kEqual : kDiffer;
}

// Not fmt::print, which throws where standard error cannot be written either.
void complain(const std::exception& error) {
  std::fputs(fmt::format("compare_dumps: {}\n", error.what()).c_str(), stderr);
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
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kEqual : kNotComparable;
  }
  try {
    return compare(options);
  } catch (const std::exception& error) {
    complain(error);
    try {
      write_json(options,
                 json_not_comparable(options.a, options.b, error.what()));
    } catch (const std::exception& second) {
      complain(second);
    }
    return kNotComparable;
  }
}
