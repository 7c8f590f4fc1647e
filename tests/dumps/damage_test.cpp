// SPDX-License-Identifier: Apache-2.0
//
// A damaged tree is never compared: every kind of damage, first as it is (some
// file no longer matches COMPLETE), then resealed, so that the check behind the
// digests has to find it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dumps/tree_reader.h"
#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Damage : public testing::Test {
 protected:
  Damage() { write_tree(dir_, two_ranks(), true); }

  void replace_in(const std::string& name, const std::string& from,
                  const std::string& to) {
    std::string text = read_text(dir_ / name);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_text(dir_ / name, text.replace(at, from.size(), to));
  }
  std::string line_of(const std::string& name, int number) const {
    std::string text = read_text(dir_ / name);
    for (; number > 1; --number) text.erase(0, text.find('\n') + 1);
    return text.substr(0, text.find('\n') + 1);
  }
  std::string fault() const {
    return error_of([&] { read_tree(dir_); });
  }
  std::string resealed_fault() const {
    reseal(dir_);
    return fault();
  }

  TempDir folder_;
  fs::path dir_ = folder_ / "tree";
};

TEST_F(Damage, AWholeTreeIsRead) {
  const Tree tree = read_tree(dir_);
  EXPECT_EQ(tree.ranks, 2);
  EXPECT_EQ(tree.leaves.size(), 12u + 8u);
  EXPECT_EQ(tree.leaves[0].leaf, "kind=index/tp=2/pos=9/launch0/in/wk.npy");
  EXPECT_EQ(tree.leaves[0].dtype, Dtype::bf16);
  EXPECT_EQ(tree.leaves[0].shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(tree.leaves[12].info.rank_in_group, 1);
  EXPECT_EQ(tree.leaves[12].info.group_ranks, 2);
  EXPECT_EQ(tree.leaves[12].sequence, 0);
  EXPECT_EQ(tree.leaves[19].info.case_index, 1);
  EXPECT_EQ(tree.leaves[19].info.repro, "check_topk --pos 8");
  EXPECT_TRUE(fs::exists(tree.leaves[19].tensor));
  reseal(dir_);  // of nothing changed changes nothing
  EXPECT_EQ(read_tree(dir_).leaves.size(), 20u);
}

TEST_F(Damage, NoTree) {
  EXPECT_THAT(error_of([&] { read_tree(folder_ / "none"); }),
              HasSubstr("none is no directory"));
  EXPECT_THAT(error_of([&] { read_tree(dir_ / "run.json"); }),
              HasSubstr("run.json is no directory"));
  EXPECT_THAT(error_of([&] { read_tree(folder_.path()); }),
              HasSubstr("has no COMPLETE: it is no finished dump"));
}

TEST_F(Damage, NoComplete) {
  fs::remove(dir_ / "COMPLETE");
  EXPECT_THAT(fault(), HasSubstr("has no COMPLETE"));
}

TEST_F(Damage, AMalformedComplete) {
  const std::string whole = read_text(dir_ / "COMPLETE");
  for (const auto& [from, to, expected] :
       std::vector<std::array<std::string, 3>>{
           {"{", "", "COMPLETE is no JSON object"},
           {"exact-topk/dump/1", "exact-topk/dump/2",
            "has schema exact-topk/dump/2, not exact-topk/dump/1"},
           {"\"schema\"", "\"scheme\"", "has no string \"schema\""},
           {"\"files\"", "\"filed\"", "has no object \"files\""},
           {"\"leaves\"", "\"leaved\"", "has no object \"leaves\""},
           {"\"ranks\": 2", "\"ranks\": 0", "no whole number \"ranks\""},
           {"\"ranks\": 2", "\"ranks\": 2.5", "no whole number \"ranks\""},
           {"\"ranks\": 2", "\"ranks\": 1", "names 25 files where 1 ranks"},
           {"\"ranks\": 2", "\"ranks\": 3", "rank0002.sha256"},
           {"\"scores\": 8", "\"scores\": 9",
            "counts 9 scores leaves where there are 8"},
           {"\"input\": 4", "\"input\": 3",
            "counts 3 input leaves where there are 4"},
           {"\"list\": 8", "\"lost\": 8", "no whole number \"list\""},
           {"\"run.json\": \"", "\"run.json\": \"x",
            "has no SHA-256 of run.json"}}) {
    write_text(dir_ / "COMPLETE", whole);
    replace_in("COMPLETE", from, to);
    EXPECT_THAT(fault(), HasSubstr(expected));
  }
  write_text(dir_ / "COMPLETE", "");
  EXPECT_THAT(fault(), HasSubstr("COMPLETE is no JSON object"));
}

TEST_F(Damage, AFlippedDigit) {
  const std::string line = line_of("rank0001.sha256", 1);
  const std::string flipped = (line[0] == '0' ? "1" : "0") + line.substr(1);
  replace_in("rank0001.sha256", line, flipped);
  EXPECT_THAT(fault(), HasSubstr("rank0001.sha256 does not match its SHA-256"));
  EXPECT_THAT(resealed_fault(), HasSubstr("disagrees with rank0001.sha256"));
}

TEST_F(Damage, ADuplicateLine) {
  for (const std::string name : {"rank0000.sha256", "rank0000.jsonl"}) {
    const std::string whole = read_text(dir_ / name);
    const std::string line = line_of(name, 1);
    write_text(dir_ / name, line + whole);
    EXPECT_THAT(fault(), HasSubstr(name + " does not match"));
    EXPECT_THAT(resealed_fault(), HasSubstr("line 2 repeats kind=index/tp=2/"));
    write_text(dir_ / name, whole);
    reseal(dir_);
  }
}

TEST_F(Damage, ALineThatIsNotInTheOther) {
  const std::string digests = read_text(dir_ / "rank0000.sha256");
  const std::string line = line_of("rank0000.sha256", 1);
  replace_in("rank0000.sha256", line, "");
  EXPECT_THAT(resealed_fault(), HasSubstr("disagrees with rank0000.sha256"));
  write_text(dir_ / "rank0000.sha256", digests);
  replace_in("rank0000.jsonl", line_of("rank0000.jsonl", 1), "");
  EXPECT_THAT(resealed_fault(),
              HasSubstr("has 11 leaves where rank0000.sha256 has 12"));
}

TEST_F(Damage, MalformedDigestLines) {
  const std::string whole = read_text(dir_ / "rank0000.sha256");
  const std::string first = line_of("rank0000.sha256", 1);
  const std::string second = line_of("rank0000.sha256", 2);
  const std::string digest = first.substr(0, 64);
  for (const std::string& line : std::vector<std::string>{
           "\n", "x\n", digest.substr(1) + "  name\n", digest + " name\n",
           digest + " *name\n", digest + "  \n",
           "A" + digest.substr(1) + "  n\n", digest + "0  name\n"}) {
    write_text(dir_ / "rank0000.sha256", line + whole);
    EXPECT_THAT(resealed_fault(), HasSubstr("rank0000.sha256 line 1 is not 64"))
        << line;
  }
  write_text(dir_ / "rank0000.sha256", second + first);
  EXPECT_THAT(resealed_fault(), HasSubstr("line 2 is out of order"));
  write_text(dir_ / "rank0000.sha256", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(resealed_fault(),
              HasSubstr("line 12 does not end with a newline"));
}

TEST_F(Damage, MalformedJsonLines) {
  const std::string whole = read_text(dir_ / "rank0000.jsonl");
  for (const auto& [from, to, expected] :
       std::vector<std::array<std::string, 3>>{
           {"{", "", "line 1 is no JSON object"},
           {"\n", "\n\n", "line 2 is no JSON object"},
           {"\"leaf\"", "\"loaf\"", "has no string \"leaf\""},
           {"/in/", "/im/", "is no leaf name"},
           {"\"sha256\"", "\"sha255\"", "has no string \"sha256\""},
           {"\"bf16\"", "\"bf17\"", "\"bf17\" is no dtype"},
           {"\"shape\":[2]", "\"shape\":2", "has no array \"shape\""},
           {"\"shape\":[2]", "\"shape\":[2.5]", "no array of integers"},
           {"\"shape\":[2]", "\"shape\":[-2]", "(-2,) is no shape"},
           {"\"repro\":\"", "\"repro\":7,\"x\":\"", "has no string \"repro\""},
           {"\"rank_in_group\":0", "\"rank_in_group\":-1",
            "no whole number \"rank_in_group\" of at least 0"},
           {"\"rank_in_group\":0", "\"rank_in_group\":2",
            "no whole number \"group_ranks\" of at least 3"},
           {"\"case_index\":0", "\"case_index\":\"0\"",
            "no whole number \"case_index\""},
           {"\"case_index\":0", "\"case_index\":99999999999",
            "no whole number \"case_index\""},
           {"\"case_index\":0", "\"case_index\":5",
            "disagree on the case's place"},
           {"\"group_ranks\":2", "\"group_ranks\":3",
            "disagree on the case's place or the size of its group"}}) {
    write_text(dir_ / "rank0000.jsonl", whole);
    replace_in("rank0000.jsonl", from, to);
    EXPECT_THAT(resealed_fault(), HasSubstr(expected));
  }
  write_text(dir_ / "rank0000.jsonl", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(resealed_fault(), HasSubstr("does not end with a newline"));
}

TEST_F(Damage, ATruncatedFile) {
  for (const std::string name :
       {"run.json", "rank0000.sha256", "rank0001.jsonl",
        "rank0000/kind=index/tp=2/pos=9/launch0/in/wk.npy"}) {
    const std::string whole = read_text(dir_ / name);
    write_text(dir_ / name, whole.substr(0, whole.size() / 2));
    EXPECT_THAT(fault(), HasSubstr(name + " does not match its SHA-256"));
    write_text(dir_ / name, "");
    EXPECT_THAT(fault(), HasSubstr(name + " does not match its SHA-256"));
    write_text(dir_ / name, whole);
  }
  EXPECT_EQ(read_tree(dir_).ranks, 2);
}

TEST_F(Damage, AMissingFile) {
  for (const std::string name :
       {"run.json", "rank0000.sha256", "rank0001.jsonl",
        "rank0000/kind=index/tp=2/pos=9/launch0/in/wk.npy"}) {
    const std::string whole = read_text(dir_ / name);
    const std::string complete = read_text(dir_ / "COMPLETE");
    fs::remove(dir_ / name);
    EXPECT_THAT(fault(), HasSubstr(name + " is missing"));
    EXPECT_NE(resealed_fault(), "");
    write_text(dir_ / name, whole);
    write_text(dir_ / "COMPLETE", complete);
  }
  EXPECT_EQ(read_tree(dir_).ranks, 2);
}

TEST_F(Damage, AnExtraFile) {
  for (const std::string name :
       {"rank0002.sha256", "rank0002.jsonl", "notes", "rank0000/x.npy"}) {
    write_text(dir_ / name, "");
    EXPECT_THAT(fault(), HasSubstr(name + " is not named in COMPLETE"));
    EXPECT_THAT(resealed_fault(), HasSubstr("names 26 files where 2 ranks"));
    fs::remove(dir_ / name);
    reseal(dir_);
  }
}

TEST_F(Damage, AnEmptyFolder) {
  for (const std::string name : {"notes", "rank0000/x", "rank0002"}) {
    fs::create_directory(dir_ / name);
    EXPECT_THAT(fault(), HasSubstr(name + " is an empty folder"));
    fs::remove(dir_ / name);
  }
  fs::create_directories(dir_ / "a/b/c");
  EXPECT_THAT(fault(), HasSubstr("a/b/c is an empty folder"));
  fs::remove_all(dir_ / "a");
  EXPECT_EQ(read_tree(dir_).ranks, 2);
}

TEST_F(Damage, ALinkIsNoFileOfATree) {
  fs::rename(dir_ / "run.json", folder_ / "run.json");
  fs::create_symlink(folder_ / "run.json", dir_ / "run.json");
  EXPECT_THAT(fault(), HasSubstr("run.json is no regular file"));
}

TEST_F(Damage, AMalformedRun) {
  const std::string whole = read_text(dir_ / "run.json");
  for (const auto& [from, to, expected] :
       std::vector<std::array<std::string, 3>>{
           {"{", "[", "run.json is no JSON object"},
           {"exact-topk/dump/1", "x", "run.json has schema x"},
           {"\"seed\"", "\"sead\"", "run.json has no \"seed\""},
           {"\"geometry\"", "\"g\"", "run.json has no \"geometry\""}}) {
    write_text(dir_ / "run.json", whole);
    replace_in("run.json", from, to);
    EXPECT_THAT(resealed_fault(), HasSubstr(expected));
  }
}

TEST_F(Damage, TwoRanksThatClaimOneLeaf) {
  std::vector<RankLeaves> ranks = two_ranks();
  for (TestLeaf& leaf : ranks[1]) leaf.info.rank_in_group = 0;
  write_tree(folder_ / "twice", ranks);
  EXPECT_THAT(error_of([&] { read_tree(folder_ / "twice"); }),
              HasSubstr("two ranks wrote kind=index/tp=2/pos=9/launch0/step0/"
                        "row2/scores.npy as rank 0 of their group"));
}

TEST_F(Damage, ATreeWithoutLeaves) {
  write_tree(folder_ / "empty", {{}, {}});
  EXPECT_THAT(error_of([&] { read_tree(folder_ / "empty"); }),
              HasSubstr("has no leaf to compare"));
}

}  // namespace
}  // namespace exact_topk::dumps
