// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <utility>

#include "cases/case.h"
#include "cases/families.h"
#include "cases/order.h"
#include "cases/words.h"

namespace exact_topk::cases {
namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;  // key, value

// The keys and values of a name, in its order.
Parts parts(const Case& c) {
  const oracle::Geometry &g = c.geometry, &base = c.unswitched;
  Parts all;
  const auto add = [&](bool wanted, const char* key, std::string value) {
    if (wanted) all.emplace_back(key, std::move(value));
  };
  const bool launch = c.stage == Stage::kLaunch,
             select = c.stage == Stage::kSelect;
  add(launch && !model_order(c), "kind", word_of(kKindWords, c.kind));
  add(launch, "tp", std::to_string(c.tp));
  add(true, "rows", std::to_string(c.rows));
  add(!select, "cache", c.cache);
  add(!select, "rowset", c.rowset);
  add(true, "pos", std::to_string(c.pos));
  add(c.geometry_option != kDefaultGeometry, "geometry", base.name);
  add(g.rope != base.rope, "rope", word_of(kRopeWords, g.rope));
  add(g.hadamard != base.hadamard, "hadamard",
      word_of(kHadamardWords, g.hadamard));
  add(g.scale != base.scale, "scale", word_of(kScaleWords, g.scale));
  add(g.fp8 != base.fp8, "fp8", word_of(kFp8Words, g.fp8));
  add(g.page_layout != base.page_layout, "page-layout",
      word_of(kPageLayoutWords, g.page_layout));
  add(g.k != base.k, "k", std::to_string(g.k));
  add(launch && c.launches != default_launches(c), "launches",
      std::to_string(c.launches));
  add(launch && c.steps != kDefaultSteps, "steps", std::to_string(c.steps));
  add(!c.order.empty(), "order", c.order);
  add(!launch, "stage", word_of(kStageWords, c.stage));
  add(select, "family", c.family);
  add(!c.fill.empty(), "fill", c.fill);
  return all;
}

std::string joined(const Parts& all, const std::string& without) {
  std::string text;
  for (const auto& [key, value] : all) {
    if (key == without) continue;
    text.append(text.empty() ? "" : "/").append(key).append("=").append(value);
  }
  return text;
}

int64_t default_position(const Case& c) {
  return c.stage == Stage::kSelect ? family(c.family).own_keys - 1
                                   : kDefaultPosition;
}

}  // namespace

std::string name(const Case& c) { return joined(parts(c), ""); }

std::string input_name(const Case& c) { return joined(parts(c), "tp"); }

std::vector<std::string> repro_arguments(const Case& c) {
  std::vector<std::string> arguments;
  for (const auto& [key, value] : parts(c)) {
    if (key == "kind" && c.kind == Kind::kIndex) continue;
    if (key == "pos" && c.pos == default_position(c)) continue;
    arguments.push_back(key == "family" ? "--rows-from" : "--" + key);
    arguments.push_back(key == "geometry" ? c.geometry_option : value);
  }
  return arguments;
}

bool matches(const std::string& filter, const std::string& case_name) {
  return fnmatch(filter.c_str(), case_name.c_str(), 0) == 0;
}

}  // namespace exact_topk::cases
