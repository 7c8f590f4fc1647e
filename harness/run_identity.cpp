// SPDX-License-Identifier: Apache-2.0
#include "harness/run_identity.h"

#include "cases/words.h"
#include "harness/perturb.h"

namespace exact_topk::harness {
namespace {

nlohmann::json fields(const oracle::Geometry& g) {
  return {
      {"name", g.name},
      {"hidden", g.hidden},
      {"q_lora", g.q_lora},
      {"heads", g.heads},
      {"k", g.k},
      {"theta", g.theta},
      {"rope", cases::word_of(cases::kRopeWords, g.rope)},
      {"hadamard", cases::word_of(cases::kHadamardWords, g.hadamard)},
      {"scale", cases::word_of(cases::kScaleWords, g.scale)},
      {"fp8", cases::word_of(cases::kFp8Words, g.fp8)},
      {"page_layout", cases::word_of(cases::kPageLayoutWords, g.page_layout)},
      {"layer_norm_eps", g.layer_norm_eps},
      {"rms_eps", g.rms_eps}};
}

// The fields of the one geometry; where a suite has several, {"geometries":
// [...]} in the order in which the cases first use them.
nlohmann::json geometry(const std::vector<cases::Case>& cases) {
  nlohmann::json all = nlohmann::json::array();
  for (const cases::Case& c : cases) {
    const nlohmann::json one = fields(c.geometry);
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  }
  return all.size() == 1 ? all.front() : nlohmann::json{{"geometries", all}};
}

}  // namespace

nlohmann::json run_identity(const Options& options, const Report& report,
                            const std::vector<cases::Case>& cases,
                            const std::string& arm) {
  const Settings& s = options.settings;
  return {{"commit", report.environment.commit},
          {"toolchain", report.environment.compiler},
          {"device", report.candidate.device},
          {"seed", s.seed},
          {"geometry", geometry(cases)},
          {"options",
           {{"candidate", s.candidate},
            {"arm", arm},
            {"tp", report.tp},
            {"ranks", report.environment.ranks},
            {"devices", report.environment.devices},
            {"cases", cases.size()},
            {"suite", options.suite},
            {"filter", options.filter},
            {"start_at", options.start_at},
            {"bound", s.bound},
            {"repeat", s.repeat},
            {"wave", s.wave},
            {"blocks", s.blocks},
            {"schedule", s.schedule},
            {"perturb", s.perturb ? to_string(*s.perturb) : ""},
            {"dump_tensors", s.dump_tensors}}}};
}

}  // namespace exact_topk::harness
