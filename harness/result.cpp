// SPDX-License-Identifier: Apache-2.0
#include "harness/result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace exact_topk::harness {
namespace {

// How much an outcome says against a pass when the ranks of a group are put
// together.
int weight(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return 2;
    case Outcome::kSkipped:
      return 0;
    case Outcome::kUntested:
      return 1;
    case Outcome::kMistrusted:
      return 3;
    case Outcome::kFailed:
      return 4;
  }
  return 4;
}

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void absorb(CheckResult& all, const CheckResult& part) {
  if (weight(part.outcome) > weight(all.outcome)) {
    all.outcome = part.outcome;
    all.reason = part.reason;
  }
  all.run += part.run;
  all.failed += part.failed;
}

// JSON has no NaN or infinity, and no result may get lost on its way between
// ranks.
nlohmann::json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

double number(const nlohmann::json& json) {
  return json.is_string() ? std::stod(json.get<std::string>())
                          : json.get<double>();
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "PASSED";
    case Outcome::kSkipped:
      return "SKIPPED";
    case Outcome::kUntested:
      return "UNTESTED";
    case Outcome::kMistrusted:
      return "MISTRUSTED";
    case Outcome::kFailed:
      return "FAILED";
  }
  return "?";
}

CaseResult merge(std::span<const CaseResult> parts) {
  CaseResult all = parts.front();
  for (const CaseResult& part : parts.subspan(1)) {
    if (weight(part.verdict) > weight(all.verdict)) {
      all.verdict = part.verdict;
      all.reason = part.reason;
    }
    for (const CheckResult& check : part.checks) {
      const auto same = std::find_if(
          all.checks.begin(), all.checks.end(),
          [&](const CheckResult& c) { return c.name == check.name; });
      if (same == all.checks.end())
        all.checks.push_back(check);
      else
        absorb(*same, check);
    }
    all.max_score_error = larger(all.max_score_error, part.max_score_error);
    all.max_bound_ratio = larger(all.max_bound_ratio, part.max_bound_ratio);
    all.missed += part.missed;
    all.order_errors += part.order_errors;
    all.controls_run += part.controls_run;
    all.controls_caught += part.controls_caught;
    all.seconds = larger(all.seconds, part.seconds);
    all.levels.add(part.levels);
    add(all.paths, part.paths);
    all.diagnosis.insert(all.diagnosis.end(), part.diagnosis.begin(),
                         part.diagnosis.end());
  }
  return all;
}

void to_json(nlohmann::json& json, const CaseResult& r) {
  json = {{"name", r.name},
          {"verdict", static_cast<int>(r.verdict)},
          {"reason", r.reason},
          {"repro", r.repro},
          {"checks", nlohmann::json::array()},
          {"max_score_error", number(r.max_score_error)},
          {"max_bound_ratio", number(r.max_bound_ratio)},
          {"missed", r.missed},
          {"order_errors", r.order_errors},
          {"controls_run", r.controls_run},
          {"controls_caught", r.controls_caught},
          {"seconds", r.seconds},
          {"levels", {r.levels.lists, r.levels.held}},
          {"paths", nlohmann::json::object()},
          {"diagnosis", r.diagnosis},
          {"times", r.times}};
  for (const auto& [arm, paths] : r.paths) json["paths"][arm] = paths.taken;
  for (const CheckResult& c : r.checks)
    json["checks"].push_back(
        {c.name, static_cast<int>(c.outcome), c.reason, c.run, c.failed});
}

void from_json(const nlohmann::json& json, CaseResult& r) {
  r = {};
  json.at("name").get_to(r.name);
  r.verdict = static_cast<Outcome>(json.at("verdict").get<int>());
  json.at("reason").get_to(r.reason);
  json.at("repro").get_to(r.repro);
  for (const nlohmann::json& c : json.at("checks"))
    r.checks.push_back({c.at(0), static_cast<Outcome>(c.at(1).get<int>()),
                        c.at(2), c.at(3), c.at(4)});
  r.max_score_error = number(json.at("max_score_error"));
  r.max_bound_ratio = number(json.at("max_bound_ratio"));
  json.at("missed").get_to(r.missed);
  json.at("order_errors").get_to(r.order_errors);
  json.at("controls_run").get_to(r.controls_run);
  json.at("controls_caught").get_to(r.controls_caught);
  json.at("seconds").get_to(r.seconds);
  json.at("levels").at(0).get_to(r.levels.lists);
  json.at("levels").at(1).get_to(r.levels.held);
  for (const auto& [arm, taken] : json.at("paths").items())
    r.paths[arm].taken = taken.get<uint32_t>();
  json.at("diagnosis").get_to(r.diagnosis);
  json.at("times").get_to(r.times);
}

}  // namespace exact_topk::harness
