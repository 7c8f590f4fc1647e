// SPDX-License-Identifier: Apache-2.0
//
// Every kind of bad option is status 2 and exactly one sentence that names the
// option and the value; listing options do what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/program/run_program.h"

namespace exact_topk::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Bad {
  const char* name;       // of the test
  const char* arguments;  // behind check_topk
  const char*
      part;  // of the sentence: the option, and the value where it has one
};

class BadOption : public testing::TestWithParam<Bad> {};

TEST_P(BadOption, IsOneSentenceAndStatus2) {
  const Ran ran = check(GetParam().arguments);
  EXPECT_EQ(ran.status, 2);
  ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_EQ(ran.sentences().front() + "\n", ran.err);
  EXPECT_THAT(ran.err, HasSubstr(GetParam().part));
  EXPECT_THAT(ran.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Program, BadOption,
    testing::Values(
        Bad{"Unknown", "--no-such-option", "--no-such-option"},
        Bad{"Positional", "8447", "'8447' belongs to no option"},
        Bad{"Stray", "--pos 8447 foo", "'foo' belongs to no option"},
        Bad{"StrayValue", "--cache random ties", "'ties' belongs to no option"},
        Bad{"StrayBehind", "--cache=random --rows 2 bar --seed 5",
            "'bar' belongs to no option"},
        Bad{"Kind", "--kind queue", "queue"},
        Bad{"PosText", "--pos far", "far"},
        Bad{"PosNegative", "--pos -5", "-5"},
        Bad{"PosBeyond", "--pos 99999999", "--pos"},
        Bad{"RowsNone", "--rows 0", "--rows"}, Bad{"RowsMany", "--rows 9", "9"},
        Bad{"Cache", "--cache warm", "warm"},
        Bad{"Rowset", "--rowset odd", "odd"},
        Bad{"Launches", "--launches 0", "--launches"},
        Bad{"Steps", "--steps x", "x"}, Bad{"K", "--k 0", "--k"},
        Bad{"Geometry", "--geometry nowhere.json", "nowhere.json"},
        Bad{"Rope", "--rope round", "round"},
        Bad{"Hadamard", "--hadamard maybe", "maybe"}, Bad{"Tp", "--tp 3", "3"},
        Bad{"Stage", "--stage all", "all"},
        Bad{"Family", "--stage select --rows-from odd", "odd"},
        Bad{"Fill", "--stage score --fill floats", "floats"},
        Bad{"Suite", "--suite nowhere.suite", "nowhere.suite"},
        Bad{"SuiteAndCase", "--suite nowhere.suite --pos 5", "--pos"},
        Bad{"Filter", "--filter no=such", "no=such"},
        Bad{"StartAt", "--start-at kind=none", "kind=none"},
        Bad{"Seed", "--seed 1.5", "1.5"},
        Bad{"SeedNegative", "--seed -1", "-1"},
        Bad{"BoundHalf", "--bound 0.5", "0.5"},
        Bad{"BoundNan", "--bound nan", "nan"},
        Bad{"BoundNegative", "--bound -1e-4", "-1e-4"},
        Bad{"Repeat", "--repeat 0", "--repeat"}, Bad{"Wave", "--wave 48", "48"},
        Bad{"Blocks", "--blocks none", "none"},
        Bad{"Schedule", "--schedule fifo", "fifo"},
        Bad{"Perturb", "--perturb step0:1:1", "step0:1:1"},
        Bad{"Timeout", "--timeout 0", "--timeout"},
        Bad{"NoValue", "--seed", "--seed"}, Bad{"Empty", "--dump ''", "--dump"},
        Bad{"Twice", "--seed 1 --seed 2", "--seed"},
        Bad{"ForceAlone", "--force", "--dump"},
        Bad{"TensorsAlone", "--dump-tensors", "--dump"},
        Bad{"GeometryFolder", "--geometry /tmp",
            "/tmp cannot be read: it is no"},
        Bad{"GeometryPreset", "--geometry ./glm53", "preset glm53"},
        Bad{"GeometryName", "--geometry glm54", "glm54 is no preset"},
        Bad{"SuiteFolder", "--suite /tmp", "/tmp cannot be read: it is no"},
        Bad{"CaptureFolder", "--capture /tmp", "cannot read /tmp: it is no"},
        Bad{"CandidateFolder", "--candidate /tmp", "/tmp: it is no regular"},
        Bad{"CandidateDevice", "--candidate /dev/zero",
            "/dev/zero: it is no regular"},
        Bad{"CandidateTooLong", "--candidate $(printf 'a%.0s' {1..300})",
            "aaa: it cannot be loaded: File name too long"},
        Bad{"CandidateBelowAFile", "--candidate /etc/passwd/x.so",
            "/etc/passwd/x.so: it cannot be loaded: Not a directory"},
        Bad{"CandidateMissing", "--candidate ./nowhere.so", "nowhere.so"},
        Bad{"ArmMissing", "--arm none", "base"},
        Bad{"ArmTrailingComma", "--arm base,",
            "--arm is 'base,', and one of its names is empty"},
        Bad{"ArmComma", "--arm ,", "--arm is ','"},
        Bad{"ArmTwice", "--arm base,head,base",
            "--arm is 'base,head,base', and names base twice"},
        Bad{"PerturbTensor", "--perturb launch0/step0/in/nothing:0:0",
            "cached_keys, cached_scales, poison_keys, poison_scales"},
        Bad{"QueryWord", "--stage score --query fp16", "fp16"},
        Bad{"QueryStage", "--query fp8", "needs a case of --stage score"},
        Bad{"ShrinkStage", "--shrink x", "needs a case of --stage select"},
        Bad{"ShrinkFolder", "--stage select --shrink no/such/x", "no/such/x"},
        Bad{"ShrinkInput", "--stage select --candidate ./x --shrink x",
            "--shrink x cannot be written: the run reads it"},
        Bad{"ShrinkAndJson", "--stage select --json x --shrink ./x",
            "--json and --shrink both name"},
        Bad{"ShrinkCapture", "--capture x --shrink y", "--shrink"},
        Bad{"PerturbElement",
            "--perturb launch0/step0/in/residual:99999999999:0",
            "99999999999"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(BadInput, AFifoIsRefusedAndNotWaitedFor) {
  const Scratch scratch;
  const std::string fifo = scratch.path("fifo.json");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  write_text(scratch.path("outer.suite"), "include fifo.json\n");
  for (const std::string& arguments :
       {"--geometry " + fifo, "--suite " + fifo,
        "--suite " + scratch.path("outer.suite"), "--candidate " + fifo,
        "--capture " + fifo}) {
    const Ran ran = check(arguments);
    EXPECT_EQ(ran.status, 2) << arguments;
    ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(fifo));
    EXPECT_THAT(ran.err, HasSubstr("it is no regular file"));
  }
}

TEST(BadOptionUnderMpirun, IsSaidOnce) {
  const Ran ran = check_under_mpirun(4, "--seed x");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
}

TEST(BadOptionUnderMpirun, RanksThatAreNoMultipleOfT) {
  const Ran ran = check_under_mpirun(3, small() + "--tp 2");
  EXPECT_EQ(ran.status, 2);
  ASSERT_THAT(ran.sentences(), SizeIs(1)) << ran.err;
  EXPECT_THAT(ran.sentences().front(), HasSubstr("--tp 2"));
}

TEST(Listing, PrintsNamesAlone) {
  const Ran ran = check(
      "--pos 300 --rows 2 --cache ties,zeros --rowset chain --tp 8 --list");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(
      ran.out,
      "kind=index/tp=8/rows=2/cache=ties/rowset=chain/pos=300\nkind=index/tp=8/"
      "rows=2/cache=zeros/rowset=chain/pos=300\n");
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST(Listing, StartAtAndFilterLeaveCasesOut) {
  const std::string third =
      "kind=index/tp=1/rows=2/cache=ties/rowset=chain/pos=9";
  const Ran ran = check(
      "--rows 2 --cache ties --rowset chain --tp 1 --pos 7,8,9,10 --start-at " +
      third + " --filter '*pos=*9' --list");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, third + "\n");
}

TEST(Listing, DryRunPrintsReproAndBytes) {
  const Ran ran = check(
      "--pos 300 --rows 2 --cache ties --rowset chain --tp 8 --seed 5 "
      "--dry-run");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(
      ran.out,
      HasSubstr("case       "
                "kind=index/tp=8/rows=2/cache=ties/rowset=chain/pos=300\n"));
  EXPECT_THAT(ran.out, HasSubstr("\nrun        check_topk --"));
  EXPECT_THAT(ran.out, HasSubstr("--seed 5"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("\nbytes +[1-9][0-9]+\n"));
}

TEST(Listing, ReproLineSelectsItsCaseAlone) {
  const Ran ran = check(small() +
                        "--rows 2,4 --cache ties,zeros --rowset chain --steps "
                        "3 --hadamard off --tp 2 --dry-run");
  ASSERT_EQ(ran.status, 0) << ran.err;
  const size_t name = ran.out.find("case       ") + 11,
               repro = ran.out.find("run        check_topk ") + 22;
  const std::string first =
      ran.out.substr(name, ran.out.find('\n', name) - name);
  const Ran again = check(
      ran.out.substr(repro, ran.out.find('\n', repro) - repro) + " --list");
  EXPECT_EQ(again.out, first + "\n") << again.err;
}

TEST(Listing, ReproLineHasEverySettingThatDecidesTheStatus) {
  const Ran ran = check(
      "--pos 300 --rows 2 --cache ties --rowset chain --tp 1 --timeout 0.25 "
      "--allow-mistrusted --dry-run");
  EXPECT_THAT(ran.out, HasSubstr(" --timeout 0.25 --allow-mistrusted\n"));
  const Ran plain = check(
      "--pos 300 --rows 2 --cache ties --rowset chain --tp 1 --timeout 1800 "
      "--dry-run");
  EXPECT_THAT(plain.out, testing::Not(HasSubstr("--timeout")));
}

TEST(Listing, HelpThatCannotBeWrittenIsStatus2) {
  for (const char* name : {"check_topk", "compare_dumps"}) {
    const Ran ran = run_shell(program(name) + " --help >/dev/full");
    EXPECT_EQ(ran.status, 2) << name;
    EXPECT_EQ(ran.err, std::string(name) +
                           ": standard output cannot be written: No space left "
                           "on device\n");
  }
}

TEST(Listing, HelpNamesEveryOption) {
  const Ran ran = check("--help");
  EXPECT_EQ(ran.status, 0);
  for (const char* option :
       {"--kind",     "--pos",         "--rows",      "--cache",
        "--rowset",   "--launches",    "--steps",     "--k",
        "--geometry", "--rope",        "--hadamard",  "--scale",
        "--fp8",      "--page-layout", "--tp",        "--candidate",
        "--arm",      "--stage",       "--rows-from", "--fill",
        "--suite",    "--filter",      "--start-at",  "--seed",
        "--bound",    "--repeat",      "--wave",      "--blocks",
        "--schedule", "--perturb",     "--dump",      "--dump-tensors",
        "--force",    "--json",        "--junit",     "--list",
        "--dry-run",  "--fail-fast",   "--timeout",   "--allow-mistrusted",
        "--query",    "--shrink"})
    EXPECT_THAT(ran.out, HasSubstr(option));
}

}  // namespace
}  // namespace exact_topk::tests
