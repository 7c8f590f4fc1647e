// SPDX-License-Identifier: Apache-2.0
#include "cases/suite.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "cases/families.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

std::vector<std::string> names_of(const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& c : cases) names.push_back(name(c));
  return names;
}

TEST(Suite, LinesAreOptionsWithQuotesCommentsAndIncludes) {
  const Folder folder;
  folder.write(
      "sub/inner.suite",
      "--rows 2 --cache zeros --rowset chain --pos 7   # a comment\r\n");
  const std::string path =
      folder.write("outer.suite",
                   "# a comment\n\n   \t\n"
                   "--rows '2' --cache \"ties\" --rowset chain --pos 6,'7'\n"
                   "include sub/inner.suite\n"
                   "--rows 2 --cache ties --rowset chain --pos 7 --tp 2\n"
                   "--rows 2 --cache ties --rowset chain --pos 6 # again");
  EXPECT_EQ(names_of(read_suite(path, std::nullopt, 4)),
            (std::vector<std::string>{
                "kind=index/tp=4/rows=2/cache=ties/rowset=chain/pos=6",
                "kind=index/tp=4/rows=2/cache=ties/rowset=chain/pos=7",
                "kind=index/tp=4/rows=2/cache=zeros/rowset=chain/pos=7",
                "kind=index/tp=2/rows=2/cache=ties/rowset=chain/pos=7"}));
  EXPECT_EQ(names_of(read_suite(path, 1, 4)),
            (std::vector<std::string>{
                "kind=index/tp=1/rows=2/cache=ties/rowset=chain/pos=6",
                "kind=index/tp=1/rows=2/cache=ties/rowset=chain/pos=7",
                "kind=index/tp=1/rows=2/cache=zeros/rowset=chain/pos=7"}));
}

TEST(Suite, ErrorsNameFileAndLine) {
  const Folder folder;
  const auto refusal = [&](const std::string& text) {
    const std::string path = folder.write("a.suite", text);
    std::string message = sentence([&] { read_suite(path, std::nullopt, 4); });
    for (size_t at; (at = message.find(path)) != std::string::npos;)
      message.replace(at, path.size(), "A");
    return message;
  };
  EXPECT_EQ(refusal("--pos 1\n--pos x"),
            "A:2: --pos is 'x'; it takes positions from 0 to 1048639");
  EXPECT_EQ(refusal("\n\n--bound 1"), "A:3: '--bound' is no case option");
  EXPECT_EQ(refusal("--pos '1"), "A:1: a single quote is not closed");
  EXPECT_EQ(refusal("--pos \"1 # no comment"),
            "A:1: a double quote is not closed");
  EXPECT_EQ(refusal("include"), "A:1: include takes one file");
  EXPECT_EQ(refusal("include a b"), "A:1: include takes one file");
  EXPECT_EQ(refusal("include a.suite"), "A:1: suite A includes itself");
  EXPECT_EQ(refusal("--rows-from rising"),
            "A:1: --rows-from needs --stage select");
  EXPECT_TRUE(refusal("# c\ninclude absent.suite")
                  .ends_with("absent.suite cannot be read: No such file or "
                             "directory"));
  EXPECT_TRUE(refusal("# c\ninclude absent.suite").starts_with("A:2: suite "));
  EXPECT_EQ(sentence([] { read_suite("/no/such.suite", std::nullopt, 4); }),
            "suite /no/such.suite cannot be read: No such file or directory");
  EXPECT_EQ(sentence([] { read_suite("/tmp", std::nullopt, 4); }),
            "suite /tmp cannot be read: it is no regular file");
  EXPECT_EQ(refusal("--pos 1 2"),
            "A:1: '2' belongs to no option; lists are written with commas");
  EXPECT_EQ(refusal("pos 1"),
            "A:1: 'pos' belongs to no option; lists are written with commas");
}

TEST(Suite, AFifoIsRefusedAndNotWaitedFor) {
  const Folder folder;
  const std::string outer = folder.write("outer.suite", "include in.fifo\n");
  const std::string fifo = outer.substr(0, outer.rfind('/')) + "/in.fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(sentence([&] { read_suite(fifo, std::nullopt, 4); }),
            "suite " + fifo + " cannot be read: it is no regular file");
  EXPECT_EQ(
      sentence([&] { read_suite(outer, std::nullopt, 4); }),
      outer + ":1: suite " + fifo + " cannot be read: it is no regular file");
}

TEST(Suite, SaysWhatItWouldRead) {
  const Folder folder;
  const std::string inner =
      folder.write("inner.suite", "--geometry=x/g --geometry glm51\n");
  const std::string outer = folder.write(
      "outer.suite",
      "--pos bad --geometry g.json\n'\ninclude inner.suite\ninclude absent\n"
      "include sub/../outer.suite\n");
  const std::string there = outer.substr(0, outer.rfind('/'));
  std::filesystem::create_directory(there + "/sub");
  EXPECT_EQ(suite_files(outer),
            (std::vector<std::filesystem::path>{outer, "g.json", inner, "x/g",
                                                there + "/absent"}));
}

TEST(Suite, TwoGeometryFilesOfOneStemAreToldApart) {
  const Folder folder;
  const std::string a = folder.write(
      "a/x.json", R"({"hidden": 64, "q_lora": 64, "heads": 8, "theta": 1e4})");
  const std::string b = folder.write(
      "b/x.json", R"({"hidden": 128, "q_lora": 64, "heads": 8, "theta": 1e4})");
  const std::string line = " --rows 2 --cache ties --rowset chain\n";
  const std::string path = folder.write(
      "s.suite", "--geometry " + a + line + "--geometry " + b + line);
  EXPECT_EQ(
      sentence([&] { read_suite(path, std::nullopt, 4); }),
      path + ":2: --geometry " + a + " and --geometry " + b +
          " differ and give the same case name "
          "kind=index/tp=4/rows=2/cache=ties/rowset=chain/pos=8447/geometry=x");
}

std::vector<Case> shipped(const std::string& suite) {
  return read_suite(EXACT_TOPK_SOURCE_DIR "/cases/" + suite + ".suite",
                    std::nullopt, 4);
}

// Counts from SPEC section 5: kinds x widths x caches x row sets x positions.
TEST(Suite, ShippedSuitesHoldWhatTheSpecSays) {
  EXPECT_EQ(shipped("exactness").size(), 3u * (3 + 2) * 5 * 4 * 2);
  EXPECT_EQ(shipped("exactness-long").size(), 1u * (3 + 2) * 5 * 4 * 3);
  std::set<std::string> families_seen;
  for (const Case& c : shipped("select")) families_seen.insert(c.family);
  EXPECT_EQ(families_seen.size(), families().size());
  std::set<int64_t> keys;
  for (const Case& c : shipped("boundaries")) keys.insert(c.pos + 1);
  for (const int64_t edge : {1, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 2049,
                             32767, 32768, 32769, 65535, 65536, 65537, 1048640})
    EXPECT_TRUE(keys.contains(edge)) << edge;
}

TEST(Suite, QuickTouchesEveryKindCacheRowSetAndStage) {
  std::set<std::string> seen;
  for (const Case& c : shipped("quick")) {
    seen.insert("kind" + std::to_string(static_cast<int>(c.kind)));
    seen.insert("stage" + std::to_string(static_cast<int>(c.stage)));
    if (c.stage == Stage::kLaunch) seen.insert({c.cache, c.rowset});
  }
  EXPECT_EQ(seen, (std::set<std::string>{"kind0", "kind1", "kind2", "stage0",
                                         "stage1", "stage2", "random", "ties",
                                         "zeros", "recent", "narrow", "serving",
                                         "mixed", "chain", "padded"}));
}

}  // namespace
}  // namespace exact_topk::cases
