// SPDX-License-Identifier: Apache-2.0
#include "cases/suite.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
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

Case shipped_row(const std::string& family, int rows) {
  return case_of("--stage select --pos 9 --rows " + std::to_string(rows) +
                 " --rows-from " + family);
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

// Every family crossed with every length and k, at its own length too; four
// widths, so that a row of n keys begins at every residue. Each line of
// families has a comment above it that says whose bug it is.
TEST(Suite, FieldCrossesFamiliesLengthsAlignmentsAndK) {
  std::map<std::string, std::set<std::string>> seen;
  for (const Case& c : shipped("field")) {
    if (c.rows < 5) continue;
    seen[c.family].insert(std::to_string(c.rows) + "/" +
                          std::to_string(c.geometry.k) + "/" +
                          std::to_string(c.pos + 1));
  }
  EXPECT_EQ(seen.size(), families().size());
  std::set<size_t> residues;
  for (const int rows : {5, 6, 7, 8})
    for (const Family& f : families()) {
      const std::string name = f.name;
      residues.insert(
          size_t(select_rows(shipped_row(name, rows), 1).row_start[0]) % 4);
      for (const int k : {1, 512, 1024, 2048})
        for (const int64_t n :
             {int64_t{1},      int64_t{2047},   int64_t{2048},
              int64_t{2049},   int64_t{8191},   int64_t{8192},
              int64_t{8193},   int64_t{16384},  int64_t{16385},
              int64_t{32767},  int64_t{32768},  int64_t{32769},
              int64_t{65535},  int64_t{65536},  int64_t{65537},
              int64_t{131071}, int64_t{131072}, int64_t{131073},
              int64_t{131074}, int64_t{131075}, int64_t{262145},
              f.own_keys})
          EXPECT_TRUE(seen[name].contains(std::to_string(rows) + "/" +
                                          std::to_string(k) + "/" +
                                          std::to_string(n)))
              << name << " " << rows << " " << k << " " << n;
      for (const int64_t n : {(1 << 20) - 1, 1 << 20, (1 << 20) + 1})
        EXPECT_TRUE(seen[name].contains("5/2048/" + std::to_string(n)));
    }
  EXPECT_EQ(residues.size(), 4u);

  std::ifstream file(EXACT_TOPK_SOURCE_DIR "/cases/field.suite");
  std::string before;
  for (std::string line; std::getline(file, line); before = line)
    if (line.starts_with("--")) {
      EXPECT_TRUE(before.starts_with("# ")) << line;
    }
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
