// SPDX-License-Identifier: Apache-2.0
//
// What the tests of dumps/ share: temporary folders, small digest trees written
// through the real writer, and running a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dumps/tree.h"

namespace exact_topk::dumps {

// A fresh folder, removed with everything in it.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// A leaf that owns its bytes.
struct TestLeaf {
  std::string leaf;                 // name
  Dtype dtype = Dtype::f32;         // element type
  std::vector<std::int64_t> shape;  // of the tensor
  std::vector<std::byte> data;      // its bytes
  LeafInfo info;                    // who writes it

  Tensor tensor() const { return {dtype, shape, data}; }
};

// A vector as a leaf: float is f32, int32_t i32, double f64, uint8_t u8,
// uint16_t bf16.
template <typename T>
TestLeaf leaf_of(std::string name, const std::vector<T>& values,
                 LeafInfo info = {.repro = "check_topk"}) {
  constexpr Dtype kDtype = std::is_same_v<T, float>          ? Dtype::f32
                           : std::is_same_v<T, std::int32_t> ? Dtype::i32
                           : std::is_same_v<T, double>       ? Dtype::f64
                           : std::is_same_v<T, std::uint8_t> ? Dtype::u8
                                                             : Dtype::bf16;
  TestLeaf leaf{.leaf = std::move(name),
                .dtype = kDtype,
                .shape = {static_cast<std::int64_t>(values.size())},
                .data = std::vector<std::byte>(values.size() * sizeof(T)),
                .info = std::move(info)};
  if (!values.empty()) {
    std::memcpy(leaf.data.data(), values.data(), leaf.data.size());
  }
  return leaf;
}

using RankLeaves = std::vector<TestLeaf>;  // of one world rank, in order

// An identity with every key that run.json needs.
nlohmann::json test_run(int seed = 1);

// Writes one whole tree, a world rank for each element.
void write_tree(const std::filesystem::path& dir,
                const std::vector<RankLeaves>& ranks, bool tensors = false,
                const nlohmann::json& run = test_run(), bool force = false);

// Two cases on two ranks of one group, with inputs, scores and lists.
std::vector<RankLeaves> two_ranks();

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, std::string_view text);

// Makes COMPLETE agree again with files that a test has changed, added or
// removed, so that only the checks behind it can notice.
void reseal(const std::filesystem::path& tree);

// Names in a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

// The sentence of the std::runtime_error that the call throws; a failure of the
// test, and "", where it throws none. A sentence is one line.
std::string error_of(const std::function<void()>& call);

struct ProgramResult {
  int status = -1;     // exit status
  std::string output;  // standard output and error together
};
ProgramResult run_program(const std::string& command);

}  // namespace exact_topk::dumps
