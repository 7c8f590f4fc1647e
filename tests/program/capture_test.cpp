// SPDX-License-Identifier: Apache-2.0
//
// check_topk --capture as a user runs it: exit statuses, the check or tensor
// that is named, ranks, reports, and what it cannot be combined with.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string captured(const std::string& name) {
  return fmt::format("--capture {}/captures/{}.safetensors",
                     EXACT_TOPK_TEST_DATA, name);
}

TEST(CaptureProgram, EveryCaptureIsWhatExpectedSays) {
  const nlohmann::json expected = nlohmann::json::parse(
      read_text(std::string(EXACT_TOPK_TEST_DATA) + "/captures/expected.json"));
  for (const auto& [name, wanted] : expected.items()) {
    SCOPED_TRACE(name);
    const Ran ran = check(captured(name));
    EXPECT_EQ(ran.status, wanted.at("status").get<int>()) << ran.out << ran.err;
    if (wanted.contains("fails")) {
      EXPECT_THAT(ran.out,
                  HasSubstr("\n           " +
                            wanted.at("fails").get<std::string>() + ": row "));
    }
    if (ran.status == 2) {
      EXPECT_THAT(ran.sentences(), SizeIs(1));
      EXPECT_THAT(ran.err, HasSubstr(wanted.value("names", name)));
    } else {
      EXPECT_THAT(ran.err, IsEmpty());
      EXPECT_THAT(ran.out, HasSubstr("levels: "));
    }
  }
}

TEST(CaptureProgram, RanksShareTheRows) {
  const Ran alone = check(captured("base-pass"));
  const Ran three = check_under_mpirun(3, captured("base-pass"));
  EXPECT_EQ(three.status, 0) << three.err;
  EXPECT_THAT(three.out, HasSubstr("mpirun -np 3 check_topk --capture"));
  const std::string checks = "56 checks, 1 untested";  // 7 of each of 8 rows
  EXPECT_THAT(alone.out, HasSubstr(checks));
  EXPECT_THAT(three.out, HasSubstr(checks));
  EXPECT_EQ(check_under_mpirun(3, captured("missed-one")).status, 1);
  const Ran bad = check_under_mpirun(3, captured("bad-truncated"));
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.sentences(), SizeIs(1));
}

TEST(CaptureProgram, ContractAndRulesCanBeOverridden) {
  EXPECT_EQ(check(captured("tie-wrong-set") + " --contract values").status, 0);
  EXPECT_EQ(check(captured("tie-wrong-values") + " --contract set").status, 1);
  EXPECT_EQ(check(captured("nan-last-declared-set") + " --nan last").status, 0);
  EXPECT_EQ(check(captured("zeros-by-position") + " --zeros equal").status, 0);
  EXPECT_EQ(check(captured("sorted-as-base") + " --contract sorted").status, 0);
  EXPECT_THAT(check(captured("zeros-by-position") + " --zeros equal").out,
              HasSubstr("safetensors --zeros equal\n"));
}

TEST(CaptureProgram, ReportsLikeAnyRun) {
  const Scratch scratch;
  const std::string file = scratch.path("report.json");
  EXPECT_EQ(check(captured("missed-one") + " --json " + file).status, 1);
  nlohmann::json report = nlohmann::json::parse(read_text(file));
  EXPECT_EQ(report.at("verdict"), "failed");
  EXPECT_EQ(report.at("missed"), 1);
  EXPECT_THAT(report.at("cases").at(0).at("reason").get<std::string>(),
              HasSubstr("values: row 0"));
  EXPECT_EQ(check(captured("bad-truncated") + " --json " + file).status, 2);
  report = nlohmann::json::parse(read_text(file));
  EXPECT_EQ(report.at("verdict"), "error");
}

TEST(CaptureProgram, RefusesWhatItCannotBeCombinedWith) {
  for (const char* option :
       {"--pos 5", "--rows 2", "--suite x", "--filter x", "--candidate cpu",
        "--arm base", "--tp 1", "--repeat 2", "--dump x", "--list",
        "--stage select", "--perturb launch0/step0/in/residual:0:31"}) {
    const Ran ran = check(captured("base-pass") + " " + option);
    EXPECT_EQ(ran.status, 2) << option;
    EXPECT_THAT(ran.sentences(), SizeIs(1));
    const std::string name =
        std::string(option).substr(0, std::string(option).find(' '));
    EXPECT_THAT(ran.err, HasSubstr("cannot be combined with " + name));
  }
  for (const char* rule : {"--nan last", "--zeros equal"}) {
    const Ran ran = check(captured("base-pass") + " " + rule);
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, HasSubstr("contract base"));
  }
  EXPECT_THAT(check("--capture nowhere.safetensors").err,
              HasSubstr("nowhere.safetensors"));
  EXPECT_THAT(check("--contract best").err, HasSubstr("--contract is 'best'"));
  EXPECT_THAT(check("--nan first").err, HasSubstr("--nan is 'first'"));
  EXPECT_THAT(check("--zeros apart").err, HasSubstr("--zeros is 'apart'"));
}

// The default candidate promises base, and keeps it under the levels below.
TEST(CaptureProgram, GeneratedCasesTakeContractsToo) {
  const std::string rows = "--stage select --rows-from low-bits-one --rows 2 ";
  const Ran base = check(rows);
  EXPECT_EQ(base.status, 0) << base.out << base.err;
  EXPECT_THAT(base.out, HasSubstr("levels: highest"));
  EXPECT_EQ(check(rows + "--contract set").status, 0);
  EXPECT_THAT(check(rows + "--contract set").out,
              HasSubstr("--contract set\n"));
  const Ran sorted = check(rows + "--contract sorted");
  EXPECT_EQ(sorted.status, 1);
  EXPECT_THAT(sorted.out, HasSubstr("the order leaves at entry"));
  EXPECT_EQ(check(rows + "--nan last").status, 2);
}

}  // namespace
}  // namespace exact_topk::tests
