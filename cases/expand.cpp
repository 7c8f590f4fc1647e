// SPDX-License-Identifier: Apache-2.0
#include "cases/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "cases/caches.h"
#include "cases/families.h"
#include "cases/geometry_file.h"
#include "cases/order.h"
#include "cases/plan.h"
#include "cases/rowsets.h"

namespace exact_topk::cases {
namespace {

template <typename Value>
std::vector<Value> or_default(const std::vector<Value>& given,
                              std::vector<Value> standard) {
  return given.empty() ? standard : given;
}

template <typename Entry>
std::vector<std::string> names_of(std::span<const Entry> entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

// Refuses options that change nothing at the stage: whoever gives one expects
// it to act.
void check_meaning(const CaseOptions& o) {
  const Stage stage = o.stage.value_or(Stage::kLaunch);
  const bool select = stage == Stage::kSelect;
  const auto refuse_if = [](bool senseless, const char* option,
                            const char* why) {
    if (senseless)
      throw std::invalid_argument(fmt::format("{} {}", option, why));
  };
  refuse_if(!o.families.empty() && !select, "--rows-from",
            "needs --stage select");
  refuse_if(o.fill && stage != Stage::kScore, "--fill", "needs --stage score");
  refuse_if(o.order && !o.kinds.empty(), "--kind",
            "means nothing with --order model, whose launches have kinds of "
            "their own");
  if (o.order && o.launches.value_or(1) > kModelLaunches)
    throw std::invalid_argument(
        fmt::format("--launches is {}, and --order model has {} launches",
                    *o.launches, kModelLaunches));
  if (stage == Stage::kLaunch) return;
  const char* why = select ? "means nothing with --stage select"
                           : "means nothing with --stage score";
  refuse_if(!o.kinds.empty(), "--kind", why);
  refuse_if(o.order.has_value(), "--order", why);
  refuse_if(o.launches.has_value(), "--launches", why);
  refuse_if(o.steps.has_value(), "--steps", why);
  if (!select) return;
  refuse_if(!o.caches.empty(), "--cache", why);
  refuse_if(!o.rowsets.empty(), "--rowset", why);
  refuse_if(o.geometry.has_value(), "--geometry", why);
  refuse_if(o.rope.has_value(), "--rope", why);
  refuse_if(o.hadamard.has_value(), "--hadamard", why);
  refuse_if(o.scale.has_value(), "--scale", why);
  refuse_if(o.fp8.has_value(), "--fp8", why);
  refuse_if(o.page_layout.has_value(), "--page-layout", why);
}

// What all cases of the options have in common.
Case common_part(const CaseOptions& o, int default_tp) {
  Case c;
  c.stage = o.stage.value_or(Stage::kLaunch);
  c.geometry_option = o.geometry.value_or(kDefaultGeometry);
  c.unswitched = find_geometry(c.geometry_option);
  c.geometry = c.unswitched;
  if (o.rope) c.geometry.rope = *o.rope;
  if (o.hadamard) c.geometry.hadamard = *o.hadamard;
  if (o.scale) c.geometry.scale = *o.scale;
  if (o.fp8) c.geometry.fp8 = *o.fp8;
  if (o.page_layout) c.geometry.page_layout = *o.page_layout;
  const bool launch = c.stage == Stage::kLaunch;
  c.tp = launch ? o.tp.value_or(default_tp) : 1;
  c.order = o.order.value_or("");
  c.launches = launch ? o.launches.value_or(default_launches(c)) : 1;
  c.steps = launch ? o.steps.value_or(kDefaultSteps) : 1;
  c.fill = o.fill.value_or("");
  return c;
}

std::vector<Case> select_cases(const CaseOptions& o, Case c) {
  std::vector<Case> cases;
  for (const int rows : or_default(o.rows, {2, 4})) {
    for (const std::string& chosen : or_default(o.families, family_names())) {
      for (const int64_t pos :
           or_default(o.positions, {family(chosen).own_keys - 1})) {
        c.rows = rows;
        c.family = chosen;
        c.pos = pos;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

std::vector<Case> cache_cases(const CaseOptions& o, Case c) {
  std::vector<Case> cases;
  for (const Kind kind : or_default(o.kinds, {Kind::kIndex})) {
    for (const int rows : or_default(o.rows, {2, 4})) {
      for (const std::string& chosen_cache :
           or_default(o.caches, names_of(caches()))) {
        for (const std::string& chosen_rowset :
             or_default(o.rowsets, names_of(row_sets()))) {
          for (const int64_t pos :
               or_default(o.positions, {kDefaultPosition})) {
            c.kind = kind;
            c.rows = rows;
            c.cache = chosen_cache;
            c.rowset = chosen_rowset;
            c.pos = pos;
            check_positions(c);
            cases.push_back(c);
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace

void append_new(std::vector<Case>& cases, const std::vector<Case>& more) {
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < cases.size(); ++i) known.emplace(name(cases[i]), i);
  for (const Case& c : more) {
    const auto [entry, is_new] = known.emplace(name(c), cases.size());
    if (is_new) {
      cases.push_back(c);
    } else if (!(cases[entry->second] == c)) {
      throw std::invalid_argument(
          fmt::format("--geometry {} and --geometry {} differ and give the "
                      "same case name {}",
                      cases[entry->second].geometry_option, c.geometry_option,
                      entry->first));
    }
  }
}

std::vector<Case> expand(const CaseOptions& options, int default_tp) {
  check_meaning(options);
  Case common = common_part(options, default_tp);
  std::vector<Case> cases;
  for (const int k : or_default(options.k, {common.geometry.k})) {
    common.geometry.k = k;
    append_new(cases, common.stage == Stage::kSelect
                          ? select_cases(options, common)
                          : cache_cases(options, common));
  }
  return cases;
}

}  // namespace exact_topk::cases
