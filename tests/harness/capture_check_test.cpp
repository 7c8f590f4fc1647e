// SPDX-License-Identifier: Apache-2.0
//
// The verdicts on captures: the table of expected.json, each check by a fault
// of its own, the levels that hold, and the room that formats are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/check_capture.h"
#include "oracle/formats.h"
#include "tests/harness/capture_file.h"

namespace exact_topk::harness {
namespace {

using oracle::Contract;
using oracle::ScoreFormat;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CaseResult check(const Capture& capture, CaptureRules rules) {
  return check_capture(capture, rules, {0, capture.rows()});
}
CaseResult check(const CaptureFile& file, std::optional<Contract> contract = {},
                 oracle::ValueRules values = {}) {
  const Capture capture(file.path());
  return check(capture,
               {contract.value_or(capture.contract()), values, 1e-4, 2});
}

std::vector<std::string> failed(const CaseResult& result) {
  std::vector<std::string> names;
  for (const CheckResult& c : result.checks)
    if (c.outcome == Outcome::kFailed) names.push_back(c.name);
  return names;
}

// Of both folders of captures: exit status as the verdict, and the check named.
class Expected : public testing::TestWithParam<const char*> {};

TEST_P(Expected, HoldsForEveryFile) {
  const std::string folder = std::string(EXACT_TOPK_TEST_DATA) + GetParam();
  std::ifstream text(folder + "/expected.json");
  const nlohmann::json expected = nlohmann::json::parse(text);
  ASSERT_GT(expected.size(), 5u);
  for (const auto& [name, wanted] : expected.items()) {
    SCOPED_TRACE(name);
    const int status = wanted.at("status");
    const std::string path = folder + "/" + name + ".safetensors";
    if (status == 2) {
      try {
        const Capture capture(path);
        ADD_FAILURE() << "taken";
      } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr(wanted.value("names", "")));
      }
      continue;
    }
    const Capture capture(path);
    const CaseResult result = check(capture, {capture.contract(), {}, 1e-4, 2});
    if (status == 0) {
      EXPECT_EQ(result.verdict, Outcome::kPassed) << result.reason;
      EXPECT_THAT(failed(result), IsEmpty());
    } else {
      EXPECT_EQ(result.verdict, Outcome::kFailed);
      ASSERT_FALSE(failed(result).empty());
      EXPECT_EQ(failed(result).front(), wanted.at("fails"));
      EXPECT_TRUE(result.reason.starts_with(failed(result).front() + ": row "));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Capture, Expected,
                         testing::Values("/captures", "/captures_python"));

// Rows whose scores are f64 sums rounded once to the file's format need no
// bound at all.
TEST(CaptureCheck, NeedsNoBoundForScoresRoundedOnce) {
  for (const char* name :
       {"f16-scores", "bf16-scores", "f8-query", "bf16-query"}) {
    const Capture capture(std::string(EXACT_TOPK_TEST_DATA) +
                          "/captures_python/" + name + ".safetensors");
    // f32 is given no half ulp: there the bound is half an ulp of the largest.
    const double bound =
        capture.score_format() == ScoreFormat::kF32 ? 0x1p-24 : 0;
    const CaseResult result =
        check(capture, {capture.contract(), {}, bound, 1});
    EXPECT_EQ(result.verdict, Outcome::kPassed) << name << result.reason;
  }
}

TEST(CaptureCheck, EachFaultFailsItsOwnChecks) {
  const auto with = [](std::vector<int32_t> list, Contract contract) {
    CaptureFile file;
    list.resize(8, -1);
    for (const int32_t i : {0, 1, 2}) list[size_t(4 + i)] = i;
    selection(file).set("topk", "I32", {2, 4}, list);
    return failed(check(file, contract));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(with({99, 98, 97, 96}, Contract::kSet), Names{});
  EXPECT_EQ(with({99, 98, 97, 96}, Contract::kPosition), Names{"order"});
  EXPECT_EQ(with({97, 98, 99, 96}, Contract::kBase), Names{});
  EXPECT_EQ(with({99, 98, 97, 97}, Contract::kSet),
            (Names{"duplicates", "values", "set", "ties"}));
  EXPECT_EQ(with({99, 98, 97, 0}, Contract::kSet),
            (Names{"values", "set", "ties"}));
  EXPECT_EQ(with({99, 98, 97, 0}, Contract::kValid), Names{});
  EXPECT_EQ(with({99, 98, 96, 95}, Contract::kSet), (Names{"values", "set"}));
  EXPECT_EQ(with({99, 98, 97, 100}, Contract::kValid), Names{"range"});
  EXPECT_EQ(with({99, 98, 97, -1}, Contract::kValid), Names{"range"});
  EXPECT_EQ(with({99, 98, 97, -2}, Contract::kValid), Names{"range"});
}

TEST(CaptureCheck, PaddingIsMinusOneAndNothingElse) {
  for (const int32_t pad : {-2, 0, 3, 99}) {
    CaptureFile file;
    selection(file).set<int32_t>("topk", "I32", {2, 4},
                                 {96, 97, 98, 99, 0, 1, 2, pad});
    const CaseResult result = check(file);
    EXPECT_THAT(failed(result), ElementsAre("count"));
    EXPECT_THAT(result.reason,
                HasSubstr("row 1 (n 3): entry 3 is " + std::to_string(pad)));
  }
}

TEST(CaptureCheck, ListsEveryLevelThatHeld) {
  const auto levels = [](std::vector<int32_t> list) {
    CaptureFile file;
    list.insert(list.end(), {0, 1, 2, -1});
    return to_string(
        check(selection(file).set("topk", "I32", {2, 4}, list)).levels);
  };
  EXPECT_EQ(levels({96, 97, 98, 99}),
            "highest position; held: valid values set position");
  // 96 to 99 share 12 bits, so that the k-th comes last.
  EXPECT_EQ(levels({97, 98, 99, 96}),
            "highest base; held: valid values set base");
  CaptureFile ties;
  EXPECT_EQ(to_string(check(query_group(ties)).levels),
            "highest position and sorted and base; held: valid values set "
            "position sorted base");
  EXPECT_EQ(levels({97, 96, 98, 99}), "highest set; held: valid values set");
  EXPECT_EQ(levels({1, 2, 3, 4}), "highest valid; held: valid");
  EXPECT_EQ(levels({1, 1, 3, 4}), "no level held");
}

TEST(CaptureCheck, RowsOfNoMoreThanKKeysProveNothing) {
  CaptureFile file;
  selection(file)
      .set<int32_t>("lengths", "I32", {2}, {4, 0})
      .set<int32_t>("topk", "I32", {2, 4}, {0, 1, 2, 3, -1, -1, -1, -1});
  const CaseResult result = check(file);
  EXPECT_EQ(result.verdict, Outcome::kPassed);
  EXPECT_THAT(result.reason, HasSubstr("proves nothing about selection"));
  CaptureFile one_more;
  EXPECT_THAT(check(selection(one_more)).reason, IsEmpty());
}

TEST(CaptureCheck, ValuesRankByTheRulesAskedFor) {
  CaptureFile file;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  file.set<float>("scores", "F32", {1, 5}, {-0.0f, 0.0f, nan, 1, -1})
      .set<int32_t>("lengths", "I32", {1}, {5})
      .set<int32_t>("topk", "I32", {1, 2}, {0, 3});
  EXPECT_EQ(check(file).verdict, Outcome::kFailed);
  EXPECT_EQ(check(file, {}, {.nan_last = true}).verdict, Outcome::kFailed);
  EXPECT_EQ(check(file, {}, {.zeros_equal = true}).verdict, Outcome::kFailed);
  EXPECT_EQ(check(file, {}, {.nan_last = true, .zeros_equal = true}).verdict,
            Outcome::kPassed);
}

TEST(CaptureCheck, ScoresAndListStandOnTheirOwn) {
  CaptureFile right;
  EXPECT_EQ(check(query_group(right)).verdict, Outcome::kPassed);

  CaptureFile wrong_score;  // key 1, 0.5, becomes 0.25: the list is untouched
  query_group(wrong_score);
  std::vector<float> scores;
  for (int j = 0; j < 130; ++j) scores.push_back(1.0f / float(1 << j % 3));
  scores[1] = 0.25f;
  wrong_score.set("scores", "F32", {1, 130}, scores);
  EXPECT_THAT(failed(check(wrong_score)), ElementsAre("scores"));

  CaptureFile wrong_list;
  query_group(wrong_list)
      .set<int64_t>("topk", "I64", {1, 4}, {320, 323, 326, 330});
  EXPECT_THAT(failed(check(wrong_list, Contract::kSet)),
              ElementsAre("values", "set", "ties"));

  CaptureFile both;
  query_group(both)
      .set("scores", "F32", {1, 130}, scores)
      .set<int64_t>("topk", "I64", {1, 4}, {320, 323, 326, 330});
  EXPECT_THAT(failed(check(both, Contract::kSet)),
              ElementsAre("values", "set", "ties", "scores"));
}

// Scores of 1, 0.5 and 0.25 are exact in every format; with a bound of 0 a
// score may be half an ulp off, and no more.
TEST(CaptureCheck, FormatsAreGivenHalfAnUlp) {
  EXPECT_EQ(half_ulp(1.0f, ScoreFormat::kF32), 0);
  EXPECT_EQ(half_ulp(1.0f, ScoreFormat::kF16), 0x1p-11);
  EXPECT_EQ(half_ulp(-1.5f, ScoreFormat::kBf16), 0x1p-8);
  EXPECT_EQ(half_ulp(0.0f, ScoreFormat::kF16), 0x1p-25);
  EXPECT_EQ(half_ulp(0x1p-20f, ScoreFormat::kF16), 0x1p-25);
  EXPECT_EQ(half_ulp(0.0f, ScoreFormat::kBf16), 0x1p-134);

  for (const bool half : {true, false}) {
    // Weights a quarter of an ulp, then a whole one, larger than the scores
    // say.
    for (const float ulps : {0.25f, 1.0f}) {
      CaptureFile file;
      query_group(file);
      std::vector<uint16_t> scores;
      for (int j = 0; j < 130; ++j) {
        const float score = 1.0f / float(1 << j % 3);
        scores.push_back(half ? oracle::f32_to_f16(score)
                              : oracle::f32_to_bf16(score));
      }
      file.set("scores", half ? "F16" : "BF16", {1, 130}, scores)
          .set<float>("head_weights", "F32", {1, 2},
                      {1 + ulps * (half ? 0x1p-10f : 0x1p-7f), 0.5f});
      const Capture capture(file.path());
      const CaseResult result = check(capture, {Contract::kBase, {}, 0, 1});
      EXPECT_EQ(result.verdict, ulps < 1 ? Outcome::kPassed : Outcome::kFailed);
      if (ulps == 1) {
        EXPECT_THAT(failed(result), ElementsAre("scores"));
      }
    }
  }
}

TEST(CaptureCheck, ASingleScoreOfInfinityOrNanFails) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    CaptureFile file;
    query_group(file);
    std::vector<float> scores;
    for (int j = 0; j < 130; ++j) scores.push_back(1.0f / float(1 << j % 3));
    scores[129] = bad;
    EXPECT_EQ(failed(check(file.set("scores", "F32", {1, 130}, scores))).back(),
              "scores");
  }
}

// The same result from any number of threads and any cut into parts.
TEST(CaptureCheck, ThreadsAndRanksChangeNothing) {
  constexpr int kRows = 23;
  std::vector<float> scores;
  std::vector<int32_t> lengths, topk;
  for (int r = 0; r < kRows; ++r) {
    lengths.push_back(50 + r);
    for (int j = 0; j < 80; ++j) scores.push_back(float((j * 37 + r) % 80));
    for (int i = 0; i < 3; ++i) topk.push_back(r % 5 == 0 ? i : 0);
  }
  CaptureFile file;
  const Capture capture(file.set("scores", "F32", {kRows, 80}, scores)
                            .set("lengths", "I32", {kRows}, lengths)
                            .set("topk", "I32", {kRows, 3}, topk)
                            .path());
  const CaseResult one = check(capture, {Contract::kSet, {}, 1e-4, 1});
  EXPECT_EQ(check(capture, {Contract::kSet, {}, 1e-4, 8}), one);
  std::vector<CaseResult> parts;
  for (const auto& [begin, end] :
       {std::pair{0, 7}, std::pair{7, 7}, std::pair{7, kRows}})
    parts.push_back(
        check_capture(capture, {Contract::kSet, {}, 1e-4, 3}, {begin, end}));
  CaseResult merged = merge(parts);
  merged.diagnosis = one.diagnosis;  // each part names its own first rows
  // A part without rows has made no checks, and the first of all has the names.
  EXPECT_EQ(merged, one);
}

}  // namespace
}  // namespace exact_topk::harness
