// SPDX-License-Identifier: Apache-2.0
//
// Reading a digest tree whole, and refusing one that is not. A tree is taken
// only if COMPLETE is there and every file of the tree, tensors included, is
// named in it and has the SHA-256 it says; if no file is missing or extra; and
// if the .sha256 and .jsonl files of every rank agree line by line. What is
// returned is therefore what the run wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dumps/leaf.h"
#include "dumps/npy.h"
#include "dumps/tree.h"

namespace exact_topk::dumps {

struct TreeLeaf {
  std::string leaf;                 // its name
  LeafName name;                    // what the name says
  std::string digest;               // 64 hex digits over the .npy bytes
  Dtype dtype = Dtype::f32;         // element type
  std::vector<std::int64_t> shape;  // of the tensor
  LeafInfo info;                    // who wrote it, in which case
  std::int64_t sequence = 0;        // its line in the rank's .jsonl, from 0
  std::filesystem::path tensor;     // its .npy file; empty without tensors
};

struct Tree {
  std::filesystem::path path;  // as given
  nlohmann::json run;          // run.json
  int ranks = 0;               // world ranks of the run
  // Of rank 0, then of rank 1 ..., each in execution order.
  std::vector<TreeLeaf> leaves;
};

// std::runtime_error, one sentence naming the file and the fault, where the
// tree is not whole or has no leaf.
Tree read_tree(const std::filesystem::path& path);

}  // namespace exact_topk::dumps
