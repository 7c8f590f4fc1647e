// SPDX-License-Identifier: Apache-2.0
//
// Report files and digest trees: refused before the first case where they
// cannot be written, whole or not at all, and never passed over in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string one_case() {
  return small() + "--tp 1 --rows 2 --cache random --rowset chain ";
}

void expect_refused(const Ran& ran, const std::string& part) {
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.sentences().front(), HasSubstr(part));
  EXPECT_THAT(ran.out, Not(HasSubstr("\nrun        "))) << "a case ran first";
}

TEST(Reports, PathsThatCannotBeWrittenAreRefused) {
  const Scratch scratch;
  expect_refused(
      check(one_case() + "--json " + scratch.path("no/such/folder.json")),
      "--json");
  expect_refused(
      check(one_case() + "--junit " + scratch.path("no/such/folder.xml")),
      "--junit");
  expect_refused(check(one_case() + "--json " + scratch.path("")), "directory");
}

TEST(Reports, FullDiskIsStatus2) {
  for (const char* option : {"--json", "--junit"}) {
    const Ran ran = check(one_case() + option + " /dev/full");
    EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
    ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
    EXPECT_THAT(ran.sentences().front(), HasSubstr("No space left"));
    EXPECT_THAT(ran.out, HasSubstr("\nverdict    error"));
  }
}

TEST(Reports, FullStandardOutputIsStatus2) {
  const Ran ran =
      run_shell(program("check_topk") + " " + one_case() + ">/dev/full");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
}

TEST(Reports, ExistingFileIsReplacedAndNothingIsLeftBeside) {
  const Scratch scratch;
  write_text(scratch.path("r.json"), "old");
  EXPECT_EQ(check(one_case() + "--json " + scratch.path("r.json")).status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_text(scratch.path("r.json")))["verdict"],
            "passed");
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(scratch.path("")), {}),
      1);
}

TEST(Reports, StandardOutputTakesJson) {
  const Ran ran = check(one_case() + "--json /dev/stdout");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\"schema\": \"exact-topk/report/1\""));
  EXPECT_THAT(ran.out, HasSubstr("\nverdict    passed"));
}

TEST(Reports, UsageErrorIsReportedWhereThePathAllows) {
  const Scratch scratch;
  for (const char* wrong : {"--seed x", "--no-such-option", "--filter nothing",
                            "--arm none", "--candidate ./nowhere.so"}) {
    std::filesystem::remove(scratch.path("r.json"));
    const Ran ran =
        check(one_case() + wrong + " --json " + scratch.path("r.json"));
    EXPECT_EQ(ran.status, 2) << wrong;
    ASSERT_TRUE(std::filesystem::exists(scratch.path("r.json"))) << wrong;
    EXPECT_EQ(
        nlohmann::json::parse(read_text(scratch.path("r.json")))["verdict"],
        "error");
  }
}

TEST(Dump, ExistingOrUnwritableFolderIsRefused) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("there"));
  expect_refused(check(one_case() + "--dump " + scratch.path("there")),
                 "there");
  expect_refused(check(one_case() + "--dump " + scratch.path("no/such/parent")),
                 "no/such");
  expect_refused(
      check_under_mpirun(2, one_case() + "--dump " + scratch.path("there")),
      "there");
}

TEST(Dump, SameSeedIsEqualOnOneAndTwoRanksOfTheSameT) {
  const Scratch scratch;
  const std::string cases =
      small() + "--tp 2 --rows 2,4 --cache random,ties --rowset chain ";
  const Ran one = check(cases + "--dump " + scratch.path("one"));
  const Ran two = check_under_mpirun(
      2, cases + "--dump-tensors --dump " + scratch.path("two"));
  ASSERT_EQ(one.status, 0) << one.out << one.err;
  ASSERT_EQ(two.status, 0) << two.out << two.err;
  const Ran compared =
      run_shell(program("compare_dumps") + " " + scratch.path("one") + " " +
                scratch.path("two"));
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  EXPECT_EQ(run_shell("cd " + scratch.path("two/rank0000") +
                      " && sha256sum --quiet -c ../rank0000.sha256")
                .status,
            0);
}

TEST(Dump, AnotherSeedIsNotComparableAndAPerturbedBitIsFound) {
  const Scratch scratch;
  ASSERT_EQ(check(one_case() + "--dump " + scratch.path("a")).status, 0);
  ASSERT_EQ(check(one_case() + "--seed 2 --dump " + scratch.path("b")).status,
            0);
  const Ran flipped =
      check(one_case() + "--perturb launch0/step0/in/residual:3:22 --dump " +
            scratch.path("c"));
  ASSERT_EQ(flipped.status, 0) << flipped.out << flipped.err;
  const std::string compare =
      program("compare_dumps") + " " + scratch.path("a") + " ";
  EXPECT_EQ(run_shell(compare + scratch.path("b")).status, 2);
  const Ran ran = run_shell(compare + scratch.path("c"));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("inputs differ"));
}

TEST(Dump, TreeIsCompleteAlsoWhereACheckFailed) {
  const Scratch scratch;
  EXPECT_EQ(
      check(one_case() + "--bound 0 --dump " + scratch.path("tree")).status, 1);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("tree/COMPLETE")));
}

TEST(Dump, FullDiskLeavesNoTree) {
  if (geteuid() != 0 || run_shell("unshare -m true").status != 0)
    GTEST_SKIP() << "needs root and mount namespaces";
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("disk"));
  const std::string disk = scratch.path("disk");
  const Ran ran =
      run_shell("unshare -m bash -c 'mount -t tmpfs -o size=64k tmpfs " + disk +
                " && { " + program("check_topk") + " " + one_case() +
                "--dump-tensors --dump " + disk + "/tree; status=$?; ls -A " +
                disk + "; exit $status; }'");
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("\ntree\n")));
}

}  // namespace
}  // namespace exact_topk::tests
