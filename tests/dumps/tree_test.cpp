// SPDX-License-Identifier: Apache-2.0
//
// The writer: what a tree holds byte for byte, and that it appears whole or not
// at all.
#include "dumps/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "dumps/sha256.h"
#include "tests/dumps/support.h"

namespace {

// Faults planted in the renames of this test program, by flags and source.
std::function<int(unsigned, const char*)> rename_fault;

}  // namespace

// Takes the C library's place in this program. Returns the planted error.
extern "C" int renameat2(int old_folder, const char* old_path, int new_folder,
                         const char* new_path, unsigned flags) noexcept {
  if (const int fault = rename_fault ? rename_fault(flags, old_path) : 0) {
    errno = fault;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, old_folder, old_path,
                                    new_folder, new_path, flags));
}

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Tree : public testing::Test {
 protected:
  ~Tree() override { rename_fault = nullptr; }

  TempDir folder_;
  fs::path dir_ = folder_ / "out";
};

const char* const kScores = "kind=index/pos=9/launch0/step0/row0/scores.npy";
const char* const kList = "kind=index/pos=9/launch0/step0/row0/list.npy";
const char* const kInput = "kind=index/pos=9/launch0/in/wk.npy";

RankLeaves one_row(float score = 1.0f) {
  const LeafInfo info{.repro = "check_topk --pos 9 \"x\"",
                      .rank_in_group = 0,
                      .group_ranks = 4,
                      .case_index = 7};
  return {leaf_of<float>(kScores, {score, -2.0f}, info),
          leaf_of<std::int32_t>(kList, {64, 65}, info),
          leaf_of<std::uint16_t>(kInput, {0x3F80}, info)};
}

// The .npy bytes of the scores of one_row(), all by hand.
std::string scores_npy() {
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  bytes.resize(127, ' ');
  return bytes + '\n' + std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8);
}

TEST_F(Tree, HoldsTheFilesOfTheSpecification) {
  write_tree(dir_, {one_row(), {}});
  EXPECT_THAT(names_in(dir_),
              ElementsAre("COMPLETE", "rank0000.jsonl", "rank0000.sha256",
                          "rank0001.jsonl", "rank0001.sha256", "run.json"));
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("out"));
  EXPECT_EQ(read_text(dir_ / "rank0001.sha256"), "");
  EXPECT_EQ(read_text(dir_ / "rank0001.jsonl"), "");

  const nlohmann::json run =
      nlohmann::json::parse(read_text(dir_ / "run.json"));
  nlohmann::json expected = test_run();
  expected["schema"] = "exact-topk/dump/1";
  EXPECT_EQ(run, expected);
}

TEST_F(Tree, TheDigestIsOfTheNpyBytes) {
  write_tree(dir_, {one_row()});
  write_text(folder_ / "scores.npy", scores_npy());
  const ProgramResult sum =
      run_program("sha256sum < " + (folder_ / "scores.npy").string());
  const std::string digest = sum.output.substr(0, 64);
  const std::string list = read_text(dir_ / "rank0000.sha256");
  EXPECT_THAT(list, HasSubstr(digest + "  " + kScores + "\n"));
  // Sorted by bytes: "in/" < "step0/row0/list" < "step0/row0/scores".
  EXPECT_LT(list.find(kInput), list.find(kList));
  EXPECT_LT(list.find(kList), list.find(kScores));

  const std::string lines = read_text(dir_ / "rank0000.jsonl");
  EXPECT_EQ(lines.substr(0, lines.find('\n')),
            fmt::format(R"({{"leaf":"{}","sha256":"{}","dtype":"f32",)"
                        R"("shape":[2],"repro":"check_topk --pos 9 \"x\"",)"
                        R"("rank_in_group":0,"group_ranks":4,"case_index":7}})",
                        kScores, digest));
  // Execution order, not sorted.
  EXPECT_LT(lines.find(kScores), lines.find(kList));
  EXPECT_LT(lines.find(kList), lines.find(kInput));
}

TEST_F(Tree, NamesAreSortedByUnsignedBytes) {
  const std::string ascii = "c/launch0/in/~.npy";
  const std::string latin = "c/launch0/in/\xC3\xA9.npy";  // first byte > '~'
  write_tree(dir_, {{leaf_of<float>(latin, {1}), leaf_of<float>(ascii, {1})}});
  const std::string list = read_text(dir_ / "rank0000.sha256");
  EXPECT_LT(list.find(ascii), list.find(latin));
}

TEST_F(Tree, CompleteCountsAndSealsEveryFile) {
  write_tree(dir_, {one_row(), {leaf_of<float>("c/launch0/in/a.npy", {1})}},
             true);
  const auto complete = nlohmann::json::parse(read_text(dir_ / "COMPLETE"));
  EXPECT_EQ(complete["schema"], "exact-topk/dump/1");
  EXPECT_EQ(complete["ranks"], 2);
  EXPECT_EQ(complete["leaves"],
            (nlohmann::json{{"input", 2}, {"scores", 1}, {"list", 1}}));
  // Against the tool that everybody has.
  const ProgramResult found = run_program(
      "cd " + dir_.string() +
      " && find . -type f ! -name COMPLETE -printf '%P\\n' | xargs sha256sum");
  ASSERT_EQ(found.status, 0) << found.output;
  std::size_t files = 0;
  for (const auto& [name, digest] : complete["files"].items()) {
    EXPECT_THAT(found.output,
                HasSubstr(digest.get<std::string>() + "  " + name + "\n"));
    ++files;
  }
  EXPECT_EQ(files, std::size_t(std::count(found.output.begin(),
                                          found.output.end(), '\n')));
  EXPECT_EQ(files, 1u + 4u + 4u);  // run.json, index files, tensors
}

TEST_F(Tree, Sha256sumAcceptsTheTensors) {
  write_tree(dir_, two_ranks(), true);
  for (const std::string rank : {"rank0000", "rank0001"}) {
    const ProgramResult check =
        run_program("cd " + (dir_ / rank).string() +
                    " && sha256sum --strict -c ../" + rank + ".sha256");
    EXPECT_EQ(check.status, 0) << check.output;
    EXPECT_THAT(check.output, HasSubstr("scores.npy: OK"));
  }
}

TEST_F(Tree, TensorFilesAreTheNpyBytes) {
  write_tree(dir_, {one_row()}, true);
  EXPECT_EQ(read_text(dir_ / "rank0000" / kScores), scores_npy());
}

TEST_F(Tree, TensorsDoNotChangeTheIndex) {
  write_tree(dir_, {one_row()}, true);
  write_tree(folder_ / "digests", {one_row()}, false);
  for (const char* name : {"run.json", "rank0000.sha256", "rank0000.jsonl"}) {
    EXPECT_EQ(read_text(dir_ / name), read_text(folder_ / "digests" / name));
  }
  EXPECT_FALSE(fs::exists(folder_ / "digests" / "rank0000"));
}

TEST_F(Tree, BadLeavesAreRefused) {
  const TreeStage stage(dir_, false);
  RankWriter writer(stage.partial(), 0, false);
  TestLeaf leaf = one_row()[0];
  writer.add(leaf.leaf, leaf.tensor(), leaf.info);
  EXPECT_THAT(
      error_of([&] { writer.add(leaf.leaf, leaf.tensor(), leaf.info); }),
      HasSubstr("dumped twice by rank0000"));
  EXPECT_THAT(error_of([&] { writer.add("x", leaf.tensor(), leaf.info); }),
              HasSubstr("is no leaf name"));
  leaf.shape = {3};
  EXPECT_THAT(error_of([&] { writer.add(kList, leaf.tensor(), leaf.info); }),
              HasSubstr("has 8 bytes where its dtype and shape take 12"));
}

TEST_F(Tree, NothingIsThereBeforeComplete) {
  {
    const TreeStage stage(dir_, false);
    RankWriter writer(stage.partial(), 0, true);
    for (const TestLeaf& leaf : one_row()) {
      writer.add(leaf.leaf, leaf.tensor(), leaf.info);
    }
    writer.finish();
    EXPECT_FALSE(fs::exists(dir_));
    EXPECT_EQ(names_in(folder_.path()).size(), 1u);
    EXPECT_THAT(names_in(folder_.path())[0],
                testing::StartsWith(".out.partial-"));
  }
  EXPECT_THAT(names_in(folder_.path()), ElementsAre());
}

TEST_F(Tree, AnExistingDirectoryIsRefusedAtOnce) {
  for (const char* kind : {"folder", "file", "link"}) {
    if (*kind == 'l') {
      fs::create_symlink("nowhere", dir_);
    } else if (kind[1] == 'i') {
      write_text(dir_, "precious");
    } else {
      fs::create_directory(dir_);
    }
    EXPECT_EQ(error_of([&] { TreeStage stage(dir_, false); }),
              dir_.string() + " exists already (--force replaces it)")
        << kind;
    EXPECT_THAT(names_in(folder_.path()), ElementsAre("out")) << kind;
    fs::remove(dir_);
  }
}

TEST_F(Tree, AParentThatCannotBeWrittenIsRefusedAtOnce) {
  EXPECT_EQ(
      error_of([&] { TreeStage stage(dir_ / "x", false); }),
      fmt::format("cannot write a dump to {}/x: No such file or directory",
                  dir_.string()));
  write_text(dir_, "");
  EXPECT_EQ(error_of([&] { TreeStage stage(dir_ / "x", true); }),
            fmt::format("cannot write a dump to {}/x: Not a directory",
                        dir_.string()));
  EXPECT_THAT(error_of([] { TreeStage stage("/proc/dump", false); }),
              HasSubstr("cannot write a dump to /proc/dump: "));
  EXPECT_THAT(error_of([] { TreeStage stage("", false); }),
              HasSubstr("names no directory"));
  EXPECT_THAT(error_of([] { TreeStage stage("/", true); }),
              HasSubstr("names no directory"));
}

TEST_F(Tree, ATrailingSlashIsTheSameName) {
  write_tree(dir_.string() + "/", {one_row()});
  EXPECT_TRUE(fs::exists(dir_ / "COMPLETE"));
}

TEST_F(Tree, StalePartialTreesAreLeftAlone) {
  const std::string stale = fmt::format(".out.partial-{}", ::getpid());
  fs::create_directory(folder_ / stale);
  write_text(folder_ / stale / "x", "");
  write_tree(dir_, {one_row()});
  EXPECT_THAT(names_in(folder_.path()), ElementsAre(stale, "out"));
  EXPECT_THAT(names_in(folder_ / stale), ElementsAre("x"));
}

TEST_F(Tree, ForceReplacesOnlyWhenComplete) {
  write_tree(dir_, {one_row(1.0f)});
  const std::string old_list = read_text(dir_ / "rank0000.sha256");
  {
    const TreeStage stage(dir_, true);
    EXPECT_EQ(read_text(dir_ / "rank0000.sha256"), old_list);
  }
  EXPECT_EQ(read_text(dir_ / "rank0000.sha256"), old_list);
  write_tree(dir_, {one_row(5.0f)}, false, test_run(), true);
  EXPECT_NE(read_text(dir_ / "rank0000.sha256"), old_list);
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("out"));
}

TEST_F(Tree, ForceReplacesDigestTreesOnly) {
  const std::string refusal =
      dir_.string() + " is no digest tree, and --force replaces nothing else";
  fs::create_directory(dir_);
  write_text(dir_ / "important", "x");
  EXPECT_EQ(error_of([&] { TreeStage stage(dir_, true); }), refusal);
  EXPECT_EQ(read_text(dir_ / "important"), "x");
  fs::remove_all(dir_);
  write_text(dir_, "a file");
  EXPECT_EQ(error_of([&] { TreeStage stage(dir_, true); }), refusal);
  fs::remove(dir_);
  fs::create_symlink(folder_.path(), dir_);
  EXPECT_EQ(error_of([&] { TreeStage stage(dir_, true); }), refusal);
  fs::remove(dir_);
  fs::create_directory(dir_);
  write_tree(dir_, {one_row()}, false, test_run(), true);
  EXPECT_TRUE(fs::exists(dir_ / "COMPLETE"));
}

TEST_F(Tree, APathThatCannotBeLookedAtIsNotSaidToExist) {
  const std::string name(300, 'a');
  EXPECT_THAT(error_of([&] { TreeStage stage(folder_ / name, false); }),
              HasSubstr("File name too long"));
}

TEST_F(Tree, ForceNeedsNothingToReplace) {
  write_tree(dir_, {one_row()}, false, test_run(), true);
  EXPECT_TRUE(fs::exists(dir_ / "COMPLETE"));
}

TEST_F(Tree, WhatAppearedMeanwhileIsNotOverwritten) {
  TreeStage stage(dir_, false);
  RankWriter(stage.partial(), 0, false).finish();
  fs::create_directory(dir_);  // a plain rename would replace an empty folder
  EXPECT_EQ(error_of([&] { stage.complete({test_run()}, 1); }),
            fmt::format("cannot rename the finished dump to {}: File exists",
                        dir_.string()));
  EXPECT_THAT(names_in(dir_), ElementsAre());
}

// File systems such as NFS know neither exchange nor no-replace.
int no_flags(unsigned flags, const char*) { return flags != 0 ? EINVAL : 0; }

TEST_F(Tree, AFileSystemWithoutRenameFlagsWorksToo) {
  rename_fault = no_flags;
  write_tree(dir_, {one_row(1.0f)});
  const std::string old_list = read_text(dir_ / "rank0000.sha256");
  write_tree(dir_, {one_row(2.0f)}, false, test_run(), true);
  EXPECT_NE(read_text(dir_ / "rank0000.sha256"), old_list);
  EXPECT_THAT(names_in(folder_.path()), ElementsAre("out"));

  TreeStage stage(folder_ / "late", false);
  RankWriter(stage.partial(), 0, false).finish();
  fs::create_directory(folder_ / "late");
  EXPECT_THAT(error_of([&] { stage.complete({test_run()}, 1); }),
              HasSubstr("File exists"));
}

TEST_F(Tree, AFailedReplacementLosesNothing) {
  write_tree(dir_, {one_row(1.0f)});
  const std::string old_list = read_text(dir_ / "rank0000.sha256");
  const std::pair<const char*, std::function<int(unsigned, const char*)>>
      faults[] = {
          {"exchange", [](unsigned, const char*) { return EBUSY; }},
          {"stepping aside",
           [](unsigned flags, const char* from) {
             const bool old = std::string_view(from).ends_with("/out");
             return flags != 0 ? EINVAL : old ? EBUSY : 0;
           }},
          {"taking its place",
           [](unsigned flags, const char* from) {
             const std::string_view path(from);
             const bool fresh =
                 path.find(".partial-") != path.npos && !path.ends_with(".old");
             return flags != 0 ? EINVAL : fresh ? EIO : 0;
           }},
      };
  for (const auto& [name, fault] : faults) {
    rename_fault = fault;
    EXPECT_THAT(error_of([&] {
                  write_tree(dir_, {one_row(2.0f)}, false, test_run(), true);
                }),
                HasSubstr("cannot rename the finished dump to"))
        << name;
    EXPECT_EQ(read_text(dir_ / "rank0000.sha256"), old_list) << name;
    EXPECT_THAT(names_in(folder_.path()), ElementsAre("out")) << name;
  }
}

TEST_F(Tree, BothArmsAppearTogether) {
  TreeStage stage(dir_, false, {"base", "head"});
  for (const char* arm : {"base", "head"}) {
    RankWriter writer(stage.partial(arm), 0, false);
    const TestLeaf leaf = one_row(*arm == 'b' ? 1.0f : 2.0f)[0];
    writer.add(leaf.leaf, leaf.tensor(), leaf.info);
    writer.finish();
  }
  EXPECT_FALSE(fs::exists(dir_));
  nlohmann::json base = test_run();
  base["arm"] = "base";
  nlohmann::json head = test_run();
  head["arm"] = "head";
  stage.complete({base, head}, 1);
  EXPECT_THAT(names_in(dir_), ElementsAre("base", "head"));
  for (const std::string arm : {"base", "head"}) {
    EXPECT_TRUE(fs::exists(dir_ / arm / "COMPLETE"));
    EXPECT_EQ(nlohmann::json::parse(read_text(dir_ / arm / "run.json"))["arm"],
              arm);
  }
  EXPECT_NE(read_text(dir_ / "base/rank0000.sha256"),
            read_text(dir_ / "head/rank0000.sha256"));
}

TEST_F(Tree, ARankThatWroteNothingIsMissed) {
  TreeStage stage(dir_, false);
  RankWriter(stage.partial(), 0, false).finish();
  EXPECT_THAT(error_of([&] { stage.complete({test_run()}, 2); }),
              HasSubstr("rank0001.sha256"));
  EXPECT_FALSE(fs::exists(dir_));
}

TEST_F(Tree, ATensorThatIsNoLeafOrIsMissingIsSeen) {
  TreeStage stage(dir_, false);
  RankWriter writer(stage.partial(), 0, true);
  for (const TestLeaf& leaf : one_row()) {
    writer.add(leaf.leaf, leaf.tensor(), leaf.info);
  }
  writer.finish();
  write_text(stage.partial() / "rank0000/extra", "");
  EXPECT_THAT(error_of([&] { stage.complete({test_run()}, 1); }),
              HasSubstr("extra is no leaf of its rank"));
  fs::remove(stage.partial() / "rank0000/extra");
  fs::remove(stage.partial() / "rank0000" / kList);
  EXPECT_THAT(error_of([&] { stage.complete({test_run()}, 1); }),
              HasSubstr("holds 2 tensors for 3 leaves"));
}

TEST_F(Tree, AnIdentityThatLacksAKeyIsAFaultOfTheCaller) {
  for (const char* key :
       {"commit", "toolchain", "device", "seed", "geometry", "options"}) {
    nlohmann::json run = test_run();
    run.erase(key);
    EXPECT_THROW(write_tree(dir_, {one_row()}, false, run), std::logic_error)
        << key;
    EXPECT_THAT(names_in(folder_.path()), ElementsAre()) << key;
  }
}

// Each index file on a full device in turn.
TEST_F(Tree, AFullDiskIsHeardInEveryFile) {
  for (const std::string name :
       {"rank0000.jsonl", "rank0000.sha256", "run.json", "COMPLETE"}) {
    EXPECT_THAT(error_of([&] {
                  TreeStage stage(dir_, false);
                  fs::create_symlink("/dev/full", stage.partial() / name);
                  RankWriter writer(stage.partial(), 0, false);
                  for (const TestLeaf& leaf : one_row()) {
                    writer.add(leaf.leaf, leaf.tensor(), leaf.info);
                  }
                  writer.finish();
                  stage.complete({test_run()}, 1);
                }),
                HasSubstr(name + ": No space left on device"));
    EXPECT_THAT(names_in(folder_.path()), ElementsAre()) << name;
  }
}

TEST_F(Tree, ATensorThatDoesNotFitIsHeard) {
  const fs::path small = folder_ / "small";
  fs::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here";
  }
  {
    const TreeStage stage(small / "out", false);
    RankWriter writer(stage.partial(), 0, true);
    const TestLeaf leaf =
        leaf_of<float>(kScores, std::vector<float>(50000, 1.0f));
    EXPECT_THAT(
        error_of([&] { writer.add(leaf.leaf, leaf.tensor(), leaf.info); }),
        HasSubstr("scores.npy: No space left on device"));
  }
  EXPECT_THAT(names_in(small), ElementsAre());
  ::umount(small.c_str());
}

}  // namespace
}  // namespace exact_topk::dumps
