// SPDX-License-Identifier: Apache-2.0
//
// Report files and digest trees: refused before the first case where they
// cannot be written, whole or not at all, and never passed over in silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

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

TEST(Reports, AFifoIsRefusedAndAnUnnamedPipeIsNot) {
  const Scratch scratch;
  ASSERT_EQ(mkfifo(scratch.path("fifo").c_str(), 0600), 0);
  for (const char* option : {"--json ", "--junit "})
    expect_refused(check(one_case() + option + scratch.path("fifo")),
                   "cannot be written: it is a FIFO");
  const Ran piped = check(one_case() + "--json >(cat >" +
                          scratch.path("r.json") + ") && wait");
  EXPECT_EQ(piped.status, 0) << piped.err;
  for (const char* device : {"/dev/null", "/dev/stdout", "/dev/stderr"})
    EXPECT_EQ(check(one_case() + "--junit " + device).status, 0) << device;
}

TEST(Reports, TellTheArmsAsAsked) {
  const Scratch scratch;
  const std::string file = scratch.path("r.json");
  for (const auto& [asked, told] : std::map<std::string, std::string>{
           {"", "base"},
           {"--arm head ", "head"},
           {"--arm both ", "both"},
           {"--arm base,base+slices ", "base,base+slices"}}) {
    const Ran ran = check(one_case() + asked + "--json " + file);
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(", arm " + told + ", device cpu\n"));
    EXPECT_EQ(nlohmann::json::parse(read_text(file)).at("candidate").at("arm"),
              told);
  }
}

// A report must not replace a file that the run reads, by whatever name, and
// not even where the run ends before it has read it.
TEST(Reports, NoInputIsReplaced) {
  const Scratch scratch;
  const std::string geometry = scratch.path("g.json"),
                    inner = scratch.path("inner.suite"),
                    outer = scratch.path("outer.suite"),
                    link = scratch.path("link"), hard = scratch.path("hard"),
                    capture = scratch.path("c.safetensors"),
                    library = scratch.path("l.so");
  const std::map<std::string, std::string> files = {
      {geometry,
       R"({"hidden": 64, "q_lora": 64, "heads": 8, "theta": 1e4, "k": 64})"},
      {inner, "--geometry " + geometry +
                  " --pos 300 --rows 2 --cache ties --rowset chain\n"},
      {outer, "--no-option\ninclude inner.suite\n"},
      {capture, "no capture"},
      {library, "no library"}};
  for (const auto& [path, text] : files) write_text(path, text);
  std::filesystem::create_symlink(geometry, link);
  std::filesystem::create_hard_link(geometry, hard);
  const std::string cases =
      "--tp 1 --pos 300 --rows 2 --cache random --rowset chain ";
  for (const std::string& arguments :
       {cases + "--geometry " + geometry + " --json " + geometry,
        cases + "--geometry=" + geometry + " --junit=" + geometry,
        cases + "--geometry " + link + " --json " + geometry,
        cases + "--geometry " + geometry + " --json " + link,
        cases + "--geometry " + geometry + " --json " + hard,
        cases + "--geometry " + geometry + " --json " +
            scratch.path("no/../g.json"),
        "--suite " + inner + " --json " + inner,
        "--suite " + inner + " --junit " + geometry,
        "--suite " + outer + " --json " + inner,
        "--suite " + outer + " --json " + geometry,
        "--capture " + capture + " --json " + capture,
        cases + "--candidate " + library + " --json " + library,
        cases + "--json " + std::string(EXACT_TOPK_BINARY_DIR) +
            "/lib/exact_topk_cpu.so"}) {
    std::filesystem::create_directory(scratch.path("no"));
    expect_refused(check(arguments), "cannot be written: the run reads it");
    // An option that does not parse is an error of its own, and has a report.
    EXPECT_EQ(check(arguments + " --pos x").status, 2);
    for (const auto& [path, text] : files)
      ASSERT_EQ(read_text(path), text) << arguments;
  }
  EXPECT_GT(std::filesystem::file_size(std::string(EXACT_TOPK_BINARY_DIR) +
                                       "/lib/exact_topk_cpu.so"),
            100000u);
}

TEST(Reports, NoneLiesInTheTree) {
  const Scratch scratch;
  const std::string tree = scratch.path("tree");
  ASSERT_EQ(check(one_case() + "--dump " + tree).status, 0);
  expect_refused(check(one_case() + "--force --dump " + tree + " --json " +
                       tree + "/../tree/r.json"),
                 "it lies in the tree --dump " + tree);
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

// The kernel follows a link before it goes up.
TEST(Dump, ALinkInThePathIsFollowed) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path("far/away"));
  std::filesystem::create_directory(scratch.path("here"));
  std::filesystem::create_symlink(scratch.path("far/away"),
                                  scratch.path("here/link"));
  const std::string dir = scratch.path("here/link/../out");
  ASSERT_EQ(check(one_case() + "--dump " + dir).status, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("far/out/COMPLETE")));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("here/out")));
  expect_refused(check(one_case() + "--dump " + dir), "far/out");
}

// Every input leaf of a tree may be pasted behind --perturb, and flips what it
// names: the first difference is that leaf.
TEST(Dump, EveryInputLeafCanBePerturbed) {
  const Scratch scratch;
  const std::string run = one_case() + "--steps 1 --launches 2 --bound 0.49 ";
  ASSERT_EQ(check(run + "--dump " + scratch.path("a")).status, 0);
  std::set<std::string> leaves;
  std::istringstream lines(read_text(scratch.path("a/rank0000.sha256")));
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find("/launch1/");
        at != std::string::npos && line.find("/in/") != std::string::npos)
      leaves.insert(line.substr(at + 1));
  // Weights, rope table, inputs of a step, cached keys and poison.
  EXPECT_EQ(leaves.size(), 8u + 2u + 7u + 2u + 2u);
  // A flipped bit of these names memory that is not there.
  for (const char* unsafe :
       {"requests", "positions", "slots", "page_table", "indptr"})
    EXPECT_EQ(leaves.erase("launch1/step0/in/" + std::string(unsafe) + ".npy"),
              1u);
  for (const std::string& leaf : leaves) {
    const Ran ran = check(run + "--force --perturb " + leaf + ":1:0 --dump " +
                          scratch.path("b"));
    ASSERT_NE(ran.status, 2) << leaf << ran.err;
    const Ran compared = run_shell(program("compare_dumps") + " " +
                                   scratch.path("a") + " " + scratch.path("b"));
    EXPECT_EQ(compared.status, 1) << leaf << compared.err;
    // The rope table is one for all launches.
    const std::string name = leaf.substr(leaf.rfind('/'));
    EXPECT_THAT(compared.out,
                testing::ContainsRegex("inputs differ: [^ ]*" + name))
        << leaf;
  }
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
