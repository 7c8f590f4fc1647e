// SPDX-License-Identifier: Apache-2.0
#include "tests/dumps/support.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "dumps/mapped_file.h"
#include "dumps/sha256.h"

namespace exact_topk::dumps {

namespace fs = std::filesystem;

TempDir::TempDir() {
  // In memory where possible: the writer syncs every tree, and a busy disk
  // would make each test wait.
  const fs::path memory = "/dev/shm";
  const bool writable = ::access(memory.c_str(), W_OK) == 0;
  const fs::path parent = writable ? memory : fs::temp_directory_path();
  std::string name = (parent / "dumps_test.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("no temporary folder");
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

nlohmann::json test_run(int seed) {
  return {
      {"commit", "0000000"}, {"toolchain", "g++ 12"},
      {"device", "cpu"},     {"seed", seed},
      {"options", "--pos"},  {"geometry", {{"name", "glm53"}, {"k", 2048}}}};
}

void write_tree(const fs::path& dir, const std::vector<RankLeaves>& ranks,
                bool tensors, const nlohmann::json& run, bool force) {
  TreeStage stage(dir, force);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    RankWriter writer(stage.partial(), static_cast<int>(rank), tensors);
    for (const TestLeaf& leaf : ranks[rank]) {
      writer.add(leaf.leaf, leaf.tensor(), leaf.info);
    }
    writer.finish();
  }
  stage.complete({run}, static_cast<int>(ranks.size()));
}

std::vector<RankLeaves> two_ranks() {
  std::vector<RankLeaves> ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int index = 0; index < 2; ++index) {
      const std::string name = fmt::format("kind=index/tp=2/pos={}", 9 - index);
      const LeafInfo info{
          .repro = fmt::format("check_topk --pos {}", 9 - index),
          .rank_in_group = rank,
          .group_ranks = 2,
          .case_index = index};
      RankLeaves& leaves = ranks[static_cast<std::size_t>(rank)];
      if (rank == 0) {
        leaves.push_back(leaf_of<std::uint16_t>(name + "/launch0/in/wk.npy",
                                                {0x3F80, 0x4000}, info));
        leaves.push_back(leaf_of<std::uint8_t>(
            name + "/launch0/step0/in/cache.npy", {1, 2, 3}, info));
      }
      for (const int row : {2, 10}) {
        const std::string base =
            fmt::format("{}/launch0/step0/row{}", name, row);
        leaves.push_back(
            leaf_of<float>(base + "/scores.npy", {1.0f, 2.0f, 3.0f}, info));
        leaves.push_back(
            leaf_of<std::int32_t>(base + "/list.npy", {66, 65, 64}, info));
      }
    }
  }
  return ranks;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file) << path;
  return text.str();
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  EXPECT_TRUE(file.flush()) << path;
}

void reseal(const fs::path& tree) {
  nlohmann::json complete = nlohmann::json::parse(read_text(tree / "COMPLETE"));
  complete["files"] = nlohmann::json::object();
  for (const auto& entry : fs::recursive_directory_iterator(tree)) {
    const std::string name = entry.path().lexically_relative(tree).string();
    if (entry.is_directory() || name == "COMPLETE") continue;
    complete["files"][name] = sha256_hex(MappedFile(entry.path()).bytes());
  }
  write_text(tree / "COMPLETE", complete.dump());
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

ProgramResult run_program(const std::string& command) {
  ProgramResult result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    result.output.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace exact_topk::dumps
