// SPDX-License-Identifier: Apache-2.0
//
// Runs with 1, 2, 4 and 8 ranks: they pass, report every case in listed order
// whoever ran it, and say what emulation leaves untested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, PassInListedOrder) {
  const int ranks = GetParam();
  const Scratch scratch;
  const std::string cases =
      small() + "--tp 4 --rows 2,4 --cache random,ties --rowset chain,mixed ";
  const Ran listed = check(cases + "--list");
  const Ran ran = check_under_mpirun(
      ranks, cases + "--json " + scratch.path("report.json"));
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto report =
      nlohmann::json::parse(read_text(scratch.path("report.json")));
  EXPECT_EQ(report["schema"], "exact-topk/report/1");
  EXPECT_EQ(report["verdict"], "passed");
  EXPECT_EQ(report["environment"]["ranks"], ranks);
  EXPECT_EQ(report["environment"]["tp"], 4);
  EXPECT_EQ(report["counts"]["cases"], 8);
  EXPECT_EQ(report["counts"]["failed"], 0);
  EXPECT_EQ(report["missed"], 0);
  EXPECT_GT(report["controls"]["run"], 0);
  EXPECT_EQ(report["controls"]["run"], report["controls"]["caught"]);
  // Rank agreement is untested where a rank stands for the four, and only
  // there.
  EXPECT_EQ(report["counts"]["untested"] > 0, ranks < 4);
  std::string names;
  for (const auto& c : report["cases"])
    names += c["name"].get<std::string>() + "\n";
  EXPECT_EQ(names, listed.out);
}

INSTANTIATE_TEST_SUITE_P(Program, Ranks, testing::Values(1, 2, 4, 8),
                         testing::PrintToStringParamName());

// Ranks take the devices that the candidate sees in turn, and say so; the
// ordinal is what the candidate is opened with.
TEST(Binding, IsTheRankModuloTheDevices) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(
      3,
      small() +
          "--tp 1 --rows 2 --cache random,ties,zeros --rowset chain "
          "--candidate " +
          rogue() + " --json " + scratch.path("r.json") + " --dump " +
          scratch.path("tree"),
      "ROGUE_DEVICES=2 ROGUE_LOG=" + scratch.path("rank"));
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const std::vector<std::string> expected = {
      "rank 0 -> device 0 of 2 (abacus)", "rank 1 -> device 1 of 2 (abacus)",
      "rank 2 -> device 0 of 2 (abacus)"};
  for (const std::string& line : expected)
    EXPECT_THAT(ran.err, HasSubstr("binding    " + line + "\n"));
  EXPECT_EQ(read_text(scratch.path("rank0")), "0");
  EXPECT_EQ(read_text(scratch.path("rank1")), "1");
  EXPECT_EQ(read_text(scratch.path("rank2")), "0");
  EXPECT_EQ(nlohmann::json::parse(
                read_text(scratch.path("r.json")))["environment"]["devices"],
            expected);
  EXPECT_EQ(nlohmann::json::parse(
                read_text(scratch.path("tree/run.json")))["options"]["devices"],
            expected);
}

// Where a candidate does not know its devices, each rank takes its own.
TEST(Binding, IsTheRankWhereTheDevicesAreUnknown) {
  const Scratch scratch;
  const Ran ran = check_under_mpirun(
      2,
      small() + "--tp 2 --rows 2 --cache random --rowset chain --candidate " +
          rogue(),
      "ROGUE_DEVICES=0 ROGUE_LOG=" + scratch.path("rank"));
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("binding    rank 1 -> device 1 (abacus)\n"));
  EXPECT_EQ(read_text(scratch.path("rank1")), "1");
}

TEST(Binding, IsNotSaidOfTheCpuThatAllShare) {
  const Ran ran = check_under_mpirun(
      2, small() + "--tp 2 --rows 2 --cache random --rowset chain");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, testing::Not(HasSubstr("binding")));
}

TEST(Run, PrintsReproBeforeResult) {
  const Ran ran =
      check(small() + "--tp 1 --rows 2 --cache random --rowset chain");
  ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
  const size_t repro = ran.out.find("\nrun        check_topk "),
               result = ran.out.find("\nPASSED     "),
               verdict = ran.out.find("\nverdict    passed");
  EXPECT_LT(ran.out.find("candidate  exact-topk cpu"), repro);
  EXPECT_LT(repro, result);
  EXPECT_LT(result, verdict);
  EXPECT_NE(verdict, std::string::npos);
}

TEST(Run, SuiteMixesT) {
  const Scratch scratch;
  const std::string line =
      small() + "--rows 2 --cache random --rowset chain --tp ";
  write_text(scratch.path("mixed.suite"),
             "# two T\n" + line + "2\n" + line + "1\n");
  const Ran ran =
      check_under_mpirun(2, "--suite " + scratch.path("mixed.suite") +
                                " --json " + scratch.path("r.json"));
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto report = nlohmann::json::parse(read_text(scratch.path("r.json")));
  EXPECT_THAT(report["cases"], SizeIs(2));
  EXPECT_EQ(report["environment"]["tp"], nlohmann::json({1, 2}));
  EXPECT_EQ(report["counts"]["untested"], 0);
}

TEST(Run, BoundZeroFailsAndFailFastStops) {
  const Scratch scratch;
  // f32 scores of random inputs are never all exact.
  const Ran ran = check(small() +
                        "--tp 1 --rows 4 --cache random,recent --rowset chain "
                        "--bound 0 --fail-fast --json " +
                        scratch.path("r.json"));
  EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
  const auto report = nlohmann::json::parse(read_text(scratch.path("r.json")));
  EXPECT_EQ(report["verdict"], "failed");
  EXPECT_EQ(report["counts"]["failed"], 1);
  EXPECT_EQ(report["counts"]["skipped"], 1);
  EXPECT_THAT(ran.out, HasSubstr("\nverdict    failed"));
}

TEST(Run, FallsBackToCopiesWhereSharedMemoryIsFull) {
  if (geteuid() != 0 || run_shell("unshare -m true").status != 0)
    GTEST_SKIP() << "needs root and mount namespaces";
  const std::string run = mpirun(2, program("check_topk")) + " " + small() +
                          "--tp 2 --rows 2 --cache random --rowset chain";
  const Ran ran = run_shell(
      "unshare -m bash -c 'mount -t tmpfs -o size=48m tmpfs /dev/shm && " +
      run + "'");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("note: /dev/shm lacks room"));
  EXPECT_THAT(ran.out, HasSubstr("\nverdict    passed"));
}

}  // namespace
}  // namespace exact_topk::tests
