// SPDX-License-Identifier: Apache-2.0
//
// A rank that ends early ends the run: one sentence and status 2 where the
// harness is at fault, a failed case and status 1 where a foreign plug-in is,
// and never a hang (run_shell ends a run after two minutes with status 124).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

struct End {
  const char* how;   // as failing_rank and rogue take it
  const char* says;  // part of the sentence
};

std::string test_name(const testing::TestParamInfo<End>& end) {
  std::string name;
  for (const char c : std::string(end.param.how))
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : 'X';
  return name;
}

class FailingRank : public testing::TestWithParam<End> {};

TEST_P(FailingRank, IsOneSentenceAndStatus2) {
  const std::string program =
      std::string(EXACT_TOPK_BINARY_DIR) + "/tests/exact_topk_failing_rank";
  const Ran ran = run_shell(mpirun(3, program) + " 1 '" + GetParam().how + "'");
  EXPECT_EQ(ran.status, 2) << ran.err;
  ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.sentences().front(), HasSubstr("rank 1"));
  EXPECT_THAT(ran.sentences().front(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Program, FailingRank,
    testing::Values(End{"exception", "something is wrong"},
                    End{"terminate", "std::terminate"},
                    End{"thread", "thrown in a thread"}, End{"segv", "SIGSEGV"},
                    End{"stack", "SIGSEGV"}, End{"abort", "SIGABRT"},
                    End{"fpe", "SIGFPE"}, End{"bus", "SIGBUS"},
                    End{"ill", "SIGILL"}, End{"term", "SIGTERM"},
                    End{"exit0", "exit(0)"}, End{"exit3", "exit(3)"},
                    End{"_exit0", "_exit(0)"}, End{"quick_exit", "quick_exit"},
                    End{"own hang", "--timeout"}),
    test_name);

TEST(FailingRankKilled, EndsTheRun) {
  const std::string program =
      std::string(EXACT_TOPK_BINARY_DIR) + "/tests/exact_topk_failing_rank";
  const Ran ran = run_shell(mpirun(3, program) + " 1 kill");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.status, 124) << "it hung";
}

TEST(FailingRankAlone, IsStatus2WithoutMpirun) {
  const Ran ran = run_shell(std::string(EXACT_TOPK_BINARY_DIR) +
                            "/tests/exact_topk_failing_rank 0 _exit0");
  EXPECT_EQ(ran.status, 2) << ran.err;
}

class FailingPlugin : public testing::TestWithParam<End> {};

// `timeout` is in seconds.
std::string rogue_run(const Scratch& scratch,
                      const std::string& timeout = "100") {
  return small() +
         "--tp 2 --rows 2 --cache random,ties --rowset chain --timeout " +
         timeout + " --candidate " + rogue() + " --json " +
         scratch.path("r.json") + " --junit " + scratch.path("r.xml");
}

TEST_P(FailingPlugin, FailsItsCaseAndIsReported) {
  const Scratch scratch;
  const std::string timeout =
      std::string(GetParam().how) == "hang" ? "10" : "100";
  const Ran ran = check_under_mpirun(
      2, rogue_run(scratch, timeout),
      std::string("ROGUE_CALL=launch ROGUE_RANK=1 ROGUE_HOW=") +
          GetParam().how);
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const auto report = nlohmann::json::parse(read_text(scratch.path("r.json")));
  EXPECT_EQ(report["verdict"], "failed");
  EXPECT_EQ(report["counts"]["cases"], 2);
  EXPECT_EQ(report["counts"]["failed"], 1);
  std::string reason;
  for (const auto& c : report["cases"])
    if (c["verdict"] == "failed") reason = c["reason"];
  EXPECT_THAT(reason, HasSubstr(GetParam().says));
  EXPECT_THAT(reason, HasSubstr("xtk_launch"));
  EXPECT_THAT(read_text(scratch.path("r.xml")), HasSubstr("<failure"));
  EXPECT_THAT(ran.out, HasSubstr("\nverdict    failed"));
}

INSTANTIATE_TEST_SUITE_P(
    Program, FailingPlugin,
    testing::Values(End{"segv", "SIGSEGV"}, End{"abort", "SIGABRT"},
                    End{"exit0", "exit(0)"}, End{"exit3", "exit(3)"},
                    End{"_exit0", "_exit(0)"}, End{"quick_exit", "quick_exit"},
                    End{"terminate", "std::terminate"},
                    End{"hang", "did not return"}),
    test_name);

// A library that only selects is guarded alike.
TEST_P(FailingPlugin, FailsASelectionAndIsReported) {
  const Scratch scratch;
  const bool hangs = std::string(GetParam().how) == "hang";
  const Ran ran = run_shell(
      std::string("ROGUE_CALL=select ROGUE_HOW=") + GetParam().how + " " +
      program("check_topk") +
      " --stage select --rows 2 --rows-from random,rising --timeout " +
      (hangs ? "5" : "100") + " --candidate " + rogue() + " --json " +
      scratch.path("r.json"));
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const auto report = nlohmann::json::parse(read_text(scratch.path("r.json")));
  EXPECT_EQ(report["verdict"], "failed");
  EXPECT_EQ(report["counts"]["failed"], 1);
  std::string reason;
  for (const auto& c : report["cases"])
    if (c["verdict"] == "failed") reason = c["reason"];
  EXPECT_THAT(reason, HasSubstr(GetParam().says));
  EXPECT_THAT(reason, HasSubstr("xtk_select"));
}

TEST(Plugin, EveryRankFallingOverIsOneSentence) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(2, rogue_run(scratch),
                                     "ROGUE_CALL=launch ROGUE_HOW=segv");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
}

TEST(Plugin, ThatThrowsDoesNotEndTheRunWithAPass) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(2, rogue_run(scratch),
                                     "ROGUE_CALL=launch ROGUE_HOW=throw");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_EQ(nlohmann::json::parse(read_text(scratch.path("r.json")))["verdict"],
            "failed");
}

TEST(Plugin, ThatExitsWhileItIsAskedWhatItOffersFails) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(2, rogue_run(scratch),
                                     "ROGUE_CALL=describe ROGUE_HOW=exit0");
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  EXPECT_EQ(nlohmann::json::parse(read_text(scratch.path("r.json")))["verdict"],
            "failed");
}

TEST(Plugin, KilledEndsTheRun) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(
      2, rogue_run(scratch), "ROGUE_CALL=launch ROGUE_RANK=1 ROGUE_HOW=kill");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.status, 124) << "it hung";
}

TEST(Plugin, PassesWhileItBehaves) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(2, rogue_run(scratch));
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
}

TEST(Plugin, WithoutADeviceIsStatus77) {
  const Ran ran =
      run_shell("ROGUE_HOW='no device' " + program("check_topk") + " " +
                small() + "--tp 1 --rows 2 --candidate " + rogue());
  EXPECT_EQ(ran.status, 77) << ran.out << ran.err;
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
}

TEST(Plugin, OfAnotherVersionIsOneSentence) {
  const Ran ran = run_shell("ROGUE_HOW=version " + program("check_topk") + " " +
                            small() + "--tp 1 --candidate " + rogue());
  EXPECT_EQ(ran.status, 2);
  ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.sentences().front(), HasSubstr("version"));
}

TEST(Plugin, ThatIsNoLibraryIsOneSentence) {
  const Scratch scratch;
  write_text(scratch.path("text.so"), "no library\n");
  const Ran ran = check(small() + "--candidate " + scratch.path("text.so"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
}

}  // namespace
}  // namespace exact_topk::tests
