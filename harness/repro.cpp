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

}  // namespace

std::string repro_line(const cases::Case& item, const Settings& settings,
                       const Group& group) {
  const Settings defaults;
  std::string line = group.size() > 1
                         ? fmt::format("mpirun -np {} check_topk", group.size())
                         : "check_topk";
  for (const std::string& argument : cases::repro_arguments(item))
    line += ' ' + quoted(argument);
  const auto add = [&](const char* option, const std::string& value) {
    line += fmt::format(" {} {}", option, quoted(value));
  };
  if (settings.candidate != defaults.candidate)
    add("--candidate", settings.candidate);
  if (!settings.arm.empty()) add("--arm", settings.arm);
  if (settings.seed != defaults.seed)
    add("--seed", std::to_string(settings.seed));
  if (settings.bound != defaults.bound)
    add("--bound", fmt::format("{}", settings.bound));
  if (settings.repeat != defaults.repeat)
    add("--repeat", std::to_string(settings.repeat));
  if (settings.wave != defaults.wave)
    add("--wave", std::to_string(settings.wave));
  if (settings.blocks != defaults.blocks)
    add("--blocks", std::to_string(settings.blocks));
  if (!settings.schedule.empty()) add("--schedule", settings.schedule);
  if (settings.perturb) add("--perturb", to_string(*settings.perturb));
  return line;
}

}  // namespace exact_topk::harness
