// SPDX-License-Identifier: Apache-2.0
//
// compare_dumps as its users run it: exit status, sentences and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Program : public testing::Test {
 protected:
  Program() {
    write_tree(folder_ / "A", two_ranks());
    write_tree(folder_ / "same", two_ranks());
    write_tree(folder_ / "seed", two_ranks(), false, test_run(2));
    std::vector<RankLeaves> ranks = two_ranks();
    ranks[0][2].data[0] ^= std::byte{1};  // scores of the first row
    ranks[1][1].data[0] ^= std::byte{1};  // a list of the second rank
    write_tree(folder_ / "other", ranks);
  }

  ProgramResult compare(const std::string& arguments) const {
    return run_program("cd " + folder_.path().string() +
                       " && " EXACT_TOPK_BINARY_DIR "/bin/compare_dumps " +
                       arguments);
  }
  nlohmann::json report() const {
    return nlohmann::json::parse(read_text(folder_ / "report.json"));
  }

  TempDir folder_;
};

TEST_F(Program, EqualTreesGiveStatus0) {
  const ProgramResult result = compare("A same --json report.json");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("A A: 20 leaves of 2 ranks"));
  EXPECT_THAT(result.output, testing::EndsWith("EQUAL\n"));
  EXPECT_EQ(report()["verdict"], "equal");
  EXPECT_TRUE(report()["first_difference"].is_null());
  EXPECT_EQ(compare("A A").status, 0);
  EXPECT_EQ(compare("A/ same/").status, 0);
}

TEST_F(Program, DifferingTreesGiveStatus1) {
  const ProgramResult result = compare("A other --json report.json");
  EXPECT_EQ(result.status, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("first difference, scores differ: "));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("list.npy")));
  EXPECT_EQ(report()["verdict"], "differ");
  EXPECT_EQ(report()["first_difference"]["class"], "scores differ");
  EXPECT_THAT(compare("A other --all").output, HasSubstr("list.npy"));
}

TEST_F(Program, IncomparableTreesGiveStatus2) {
  const ProgramResult result = compare("A seed --json report.json");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output,
            "compare_dumps: A and seed are not comparable: their seed is 1 and "
            "2\n");
  EXPECT_EQ(report()["verdict"], "not comparable");
  EXPECT_EQ(report()["reason"],
            "A and seed are not comparable: their seed is 1 and 2");
  fs::remove(folder_ / "same/COMPLETE");
  for (const char* arguments :
       {"A same", "same A", "A none", "none A", "A A/run.json"}) {
    const ProgramResult refused = compare(arguments);
    EXPECT_EQ(refused.status, 2) << arguments;
    EXPECT_EQ(std::count(refused.output.begin(), refused.output.end(), '\n'), 1)
        << refused.output;
  }
}

TEST_F(Program, BadOptionsGiveStatus2) {
  for (const char* arguments :
       {"", "A", "A same more", "A same --no-such-option", "A same --json"}) {
    const ProgramResult result = compare(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_TRUE(result.output.starts_with("compare_dumps: ")) << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1)
        << result.output;
  }
  EXPECT_EQ(compare("--help").status, 0);
  EXPECT_THAT(compare("--help").output, HasSubstr("--json"));
}

TEST_F(Program, PathsThatCannotBeLookedAtAreOneSentence) {
  const std::string longest(300, 'a');
  EXPECT_EQ(compare(longest + " same").output,
            "compare_dumps: " + longest + ": File name too long\n");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(compare("A loop").output,
            "compare_dumps: loop: Too many levels of symbolic links\n");
}

// A report in a tree would be a file of it; a FIFO has no reader.
TEST_F(Program, TheReportGoesIntoNoTreeAndNoFifo) {
  const std::string run = read_text(folder_ / "A/run.json");
  fs::create_symlink("A/run.json", folder_ / "link");
  fs::create_symlink("same", folder_ / "tree");
  for (const char* arguments :
       {"A same --json A/run.json", "same A --json A/new.json",
        "A same --json link", "A same --json other/../A/run.json",
        "A tree --json same/report.json"}) {
    const ProgramResult result = compare(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.output,
                HasSubstr("cannot be written: it lies in the tree "));
    EXPECT_EQ(read_text(folder_ / "A/run.json"), run);
  }
  EXPECT_EQ(compare("A same").status, 0);
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  const ProgramResult result = compare("A same --json fifo");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output,
            "compare_dumps: --json fifo cannot be written: it is a FIFO\n");
  EXPECT_EQ(compare("A same --json /dev/null").status, 0);
}

TEST_F(Program, AReportThatCannotBeWrittenGivesStatus2) {
  const ProgramResult json = compare("A same --json /dev/full");
  EXPECT_EQ(json.status, 2);
  EXPECT_THAT(json.output,
              testing::EndsWith("compare_dumps: --json /dev/full cannot be "
                                "written: No space left on device\n"));
  EXPECT_EQ(json.output.find("No space"), json.output.rfind("No space"));
  EXPECT_EQ(compare("A same --json /no/such/folder/report.json").status, 2);
  EXPECT_EQ(compare("A same > /dev/full").status, 2);
  EXPECT_EQ(compare("A other > /dev/full").status, 2);
}

}  // namespace
}  // namespace exact_topk::dumps
