// SPDX-License-Identifier: Apache-2.0
#include "harness/repro.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/perturb.h"

namespace exact_topk::harness {
namespace {

std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_./:,=+").find(static_cast<char>(c)) !=
                   std::string_view::npos;
      });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A command line that grows by the options that are not default.
class Line {
 public:
  explicit Line(const Group& group)
      : text_(group.size() > 1
                  ? fmt::format("mpirun -np {} check_topk", group.size())
                  : "check_topk") {}

  void add(const std::string& word) { text_ += ' ' + quoted(word); }
  void add(const char* option, const std::string& value) {
    add(option);
    add(value);
  }
  // What all that is judged has in common.
  void add_rules(const Settings& settings) {
    if (settings.bound != Settings().bound)
      add("--bound", fmt::format("{}", settings.bound));
    if (settings.contract)
      add("--contract", std::string(oracle::to_string(*settings.contract)));
    if (settings.values.nan_last) add("--nan", "last");
    if (settings.values.zeros_equal) add("--zeros", "equal");
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string repro_line(const cases::Case& item, const Settings& settings,
                       const Group& group) {
  const Settings defaults;
  Line line(group);
  for (const std::string& argument : cases::repro_arguments(item))
    line.add(argument);
  if (settings.candidate != defaults.candidate)
    line.add("--candidate", settings.candidate);
  if (!settings.arm.empty()) line.add("--arm", settings.arm);
  if (settings.seed != defaults.seed)
    line.add("--seed", std::to_string(settings.seed));
  line.add_rules(settings);
  if (settings.query_fp8) line.add("--query", "fp8");
  if (settings.repeat != defaults.repeat)
    line.add("--repeat", std::to_string(settings.repeat));
  if (settings.wave != defaults.wave)
    line.add("--wave", std::to_string(settings.wave));
  if (settings.blocks != defaults.blocks)
    line.add("--blocks", std::to_string(settings.blocks));
  if (!settings.schedule.empty()) line.add("--schedule", settings.schedule);
  if (settings.perturb) line.add("--perturb", to_string(*settings.perturb));
  if (settings.timeout != defaults.timeout)
    line.add("--timeout", fmt::format("{}", settings.timeout));
  if (settings.allow_mistrusted) line.add("--allow-mistrusted");
  return line.text();
}

std::string capture_repro_line(const Settings& settings, const Group& group) {
  Line line(group);
  line.add("--capture", settings.capture);
  line.add_rules(settings);
  return line.text();
}

}  // namespace exact_topk::harness
