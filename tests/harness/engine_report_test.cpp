// SPDX-License-Identifier: Apache-2.0
//
// Results put together from ranks, and reports made of them: verdicts, counts,
// formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/report_json.h"
#include "harness/report_junit.h"
#include "harness/report_text.h"

namespace exact_topk::harness {
namespace {

using testing::HasSubstr;
using testing::Not;

CaseResult sample() {
  CaseResult r;
  r.name = "kind=index/tp=2/pos=9";
  r.repro = "check_topk --pos 9";
  r.checks = {{"scores", Outcome::kPassed, "", 4, 0},
              {"ranks", Outcome::kUntested, "emulated", 0, 0}};
  r.max_score_error = 1e-6;
  r.controls_run = 3;
  r.controls_caught = 3;
  return r;
}

TEST(Merge, AddsCountsTakesMaximaAndTheWorstVerdict) {
  CaseResult a = sample(), b = sample();
  b.verdict = Outcome::kFailed;
  b.reason = "row 1 is wrong";
  b.max_score_error = 2e-6;
  b.missed = 5;
  b.checks = {{"scores", Outcome::kFailed, "too large", 4, 2},
              {"set", Outcome::kPassed, "", 1, 0}};
  const std::vector<CaseResult> parts = {a, b};
  const CaseResult all = merge(parts);
  EXPECT_EQ(all.verdict, Outcome::kFailed);
  EXPECT_EQ(all.reason, "row 1 is wrong");
  EXPECT_EQ(all.max_score_error, 2e-6);
  EXPECT_EQ(all.missed, 5);
  EXPECT_EQ(all.controls_run, 6);
  ASSERT_EQ(all.checks.size(), 3u);
  EXPECT_EQ(all.checks[0],
            (CheckResult{"scores", Outcome::kFailed, "too large", 8, 2}));
  EXPECT_EQ(all.checks[1].outcome, Outcome::kUntested);
  EXPECT_EQ(all.checks[2].name, "set");
}

TEST(Merge, KeepsANanWhicheverRankHasIt) {
  std::vector<CaseResult> parts = {sample(), sample(), sample()};
  parts[1].max_score_error = std::nan("");
  EXPECT_TRUE(std::isnan(merge(parts).max_score_error));
}

TEST(Merge, ACheckThatARankPassedIsTested) {
  std::vector<CaseResult> parts = {sample(), sample()};
  parts[1].checks[1].outcome = Outcome::kPassed;
  EXPECT_EQ(merge(parts).checks[1].outcome, Outcome::kPassed);
}

TEST(CaseResult, TravelsAsJsonWithAllFields) {
  CaseResult r = sample();
  r.verdict = Outcome::kMistrusted;
  r.reason = "all scores are equal";
  r.max_bound_ratio = std::numeric_limits<double>::infinity();
  r.order_errors = 7;
  r.paths["head"].taken = 5;
  r.seconds = 0.25;
  EXPECT_EQ(nlohmann::json::parse(nlohmann::json(r).dump()).get<CaseResult>(),
            r);
}

Report report_of(std::vector<CaseResult> cases) {
  Report report;
  report.tp = {2};
  report.cases = std::move(cases);
  return report;
}

TEST(Report, StatusFollowsTheCases) {
  CaseResult failed = sample(), mistrusted = sample(), skipped = sample();
  failed.verdict = Outcome::kFailed;
  mistrusted.verdict = Outcome::kMistrusted;
  skipped.verdict = Outcome::kSkipped;
  EXPECT_EQ(status(report_of({sample(), skipped})),
            0);  // an untested check does not fail a run
  EXPECT_EQ(status(report_of({sample(), failed})), 1);
  Report report = report_of({sample(), mistrusted});
  EXPECT_EQ(status(report), 1);
  report.allow_mistrusted = true;
  EXPECT_EQ(status(report), 0);
  report.error = "the disk is full";
  EXPECT_EQ(status(report), 2);
  EXPECT_EQ(verdict(report), "error");
}

TEST(ReportJson, CountsAndNullForWhatIsNotFinite) {
  CaseResult bad = sample(), skipped = sample();
  bad.verdict = Outcome::kFailed;
  bad.max_score_error = std::numeric_limits<double>::infinity();
  bad.missed = 2;
  skipped.verdict = Outcome::kSkipped;
  skipped.checks.clear();
  const auto json =
      nlohmann::json::parse(report_json(report_of({sample(), bad, skipped})));
  EXPECT_EQ(json["schema"], "exact-topk/report/1");
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_EQ(json["counts"], (nlohmann::json{{"cases", 3},
                                            {"checks", 8},
                                            {"failed", 1},
                                            {"skipped", 1},
                                            {"untested", 2},
                                            {"mistrusted", 0}}));
  EXPECT_TRUE(json["max_score_error"].is_null());
  EXPECT_EQ(json["missed"], 2);
  EXPECT_EQ(json["controls"], (nlohmann::json{{"run", 9}, {"caught", 9}}));
  EXPECT_EQ(json["environment"]["tp"], 2);
  EXPECT_TRUE(json["cases"][1]["max_score_error"].is_null());
  EXPECT_EQ(json["cases"][2]["verdict"], "skipped");
  EXPECT_FALSE(json.contains("error"));
}

TEST(ReportJunit, EscapesAndCounts) {
  CaseResult bad = sample();
  bad.verdict = Outcome::kFailed;
  bad.reason = "a < b & \"c\"\n";
  const std::string xml = report_junit(report_of({sample(), bad}));
  EXPECT_THAT(
      xml, HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(xml, HasSubstr("message=\"a &lt; b &amp; &quot;c&quot;?\""));
}

TEST(ReportText, SaysEachFaultOnceAndEndsWithTheVerdict) {
  CaseResult bad = sample();
  bad.verdict = Outcome::kFailed;
  bad.reason = "row 1 lacks key 5";
  bad.checks = {{"set", Outcome::kFailed, "row 1 lacks key 5", 1, 1},
                {"order", Outcome::kFailed, "entry 3 differs", 1, 1}};
  const std::string result = text_result(bad);
  EXPECT_THAT(result, HasSubstr("FAILED     kind=index/tp=2/pos=9 "));
  EXPECT_THAT(result, HasSubstr("row 1 lacks key 5"));
  EXPECT_THAT(result, Not(HasSubstr("set: ")));
  EXPECT_THAT(result, HasSubstr("order: 1 of 1 failed: entry 3 differs"));
  const std::string summary = text_summary(report_of({bad, sample()}));
  const std::string last =
      summary.substr(summary.rfind('\n', summary.size() - 2) + 1);
  EXPECT_THAT(last, HasSubstr("verdict    failed: 2 cases, 1 failed"));
}

}  // namespace
}  // namespace exact_topk::harness
