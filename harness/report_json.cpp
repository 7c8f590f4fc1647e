// SPDX-License-Identifier: Apache-2.0
#include "harness/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace exact_topk::harness {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string report_json(const Report& report) {
  const Counts n = count(report);
  Json json;
  json["schema"] = "exact-topk/report/1";
  json["verdict"] = verdict(report);
  if (!report.error.empty()) json["error"] = report.error;
  json["counts"] = {{"cases", n.cases},       {"checks", n.checks},
                    {"failed", n.failed},     {"skipped", n.skipped},
                    {"untested", n.untested}, {"mistrusted", n.mistrusted}};
  json["max_score_error"] = number(n.max_score_error);
  json["missed"] = n.missed;
  json["order_errors"] = n.order_errors;
  json["controls"] = {{"run", n.controls_run}, {"caught", n.controls_caught}};
  json["paths"] = Json::object();
  for (const auto& [arm, paths] : n.paths) json["paths"][arm] = paths.names();
  json["candidate"] = {{"name", report.candidate.name},
                       {"version", report.candidate.version},
                       {"abi", report.candidate.abi},
                       {"arm", report.candidate.arm},
                       {"device", report.candidate.device}};
  const Environment& e = report.environment;
  json["environment"] = {
      {"host", e.host},
      {"ranks", e.ranks},
      {"tp", report.tp.size() == 1 ? Json(report.tp.front()) : Json(report.tp)},
      {"commit", e.commit},
      {"compiler", e.compiler},
      {"mpi", e.mpi},
      {"devices", e.devices}};
  json["cases"] = Json::array();
  for (const CaseResult& c : report.cases)
    json["cases"].push_back({{"name", c.name},
                             {"verdict", lower(to_string(c.verdict))},
                             {"reason", c.reason},
                             {"repro", c.repro},
                             {"max_score_error", number(c.max_score_error)},
                             {"missed", c.missed},
                             {"order_errors", c.order_errors},
                             {"seconds", number(c.seconds)}});
  for (size_t i = 0; i < report.cases.size(); ++i)
    for (const PartTime& t : report.cases[i].times)
      json["cases"][i]["times"].push_back(
          {{"arm", t.arm},
           {"part", t.part},
           {"microseconds", number(t.mean())},
           {"first", number(t.first)},
           {"second", number(t.second)},
           {"floor", number(t.floor)},
           {"flagged", t.flagged()},
           {"claimed", number(t.claimed)},
           {"wall", number(t.wall)},
           {"clock",
            report.candidate.device == "cpu" ? "simulator" : "device"}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace exact_topk::harness
