// SPDX-License-Identifier: Apache-2.0
//
// Writing a digest tree (SPEC section 8): what a run keeps so that another run,
// on another machine, backend or number of ranks, can be compared with it bit
// by bit.
//
//   DIR/run.json         identity of the run (below)
//   DIR/rank0000.sha256  one a world rank: sha256sum format, sorted by bytes
//   DIR/rank0000.jsonl   the same leaves in execution order, one JSON object a
//   line: leaf, sha256, dtype, shape, repro,
//                        rank_in_group, group_ranks, case_index
//   DIR/rank0000/LEAF    with tensors: the .npy files; `cd DIR/rank0000 &&
//   sha256sum -c ../rank0000.sha256` passes DIR/COMPLETE         last:
//   {"schema", "ranks", "leaves": {"input", "scores", "list"}, "files": {PATH:
//   SHA-256}} with
//                        every other file of the tree, tensors included
//
// How it works. Rank 0 of the world makes a TreeStage, which refuses what must
// be refused before the first case and creates a partial tree beside DIR. Every
// rank (rank 0 too) writes its own files there with a RankWriter. When all
// ranks have finished, rank 0 calls complete(), and the tree appears under its
// name in one rename. Until then DIR is as it was; a stage that is destroyed
// without complete() removes the partial tree. A process that dies leaves it
// behind as .DIR.partial-PID, which is never taken for a tree.
//
// No MPI here: the caller broadcasts partial(), places the barrier before
// complete() and agrees on errors. DIR must lie on a file system that every
// rank sees. One subtree per arm (`--arm both`) is one TreeStage with two names
// and, on every rank, two RankWriters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dumps/digest_list.h"
#include "dumps/npy.h"
#include "dumps/output_file.h"

namespace exact_topk::dumps {

// Trees of another schema are not comparable.
inline constexpr std::string_view kTreeSchema = "exact-topk/dump/1";

// Names within a tree.
inline constexpr std::string_view kRunFile = "run.json";
inline constexpr std::string_view kCompleteFile = "COMPLETE";
inline constexpr std::string_view kDigestsSuffix = ".sha256";
inline constexpr std::string_view kLinesSuffix = ".jsonl";
// "rank0003": the folder of a rank's tensors and the stem of its two files.
std::string rank_name(int world_rank);

// What run.json must hold besides "schema", which the stage adds. "seed" and
// "geometry" decide whether two trees can be compared; "geometry" is an object
// with every field that changes results, "options" one with the effective
// options.
inline constexpr std::string_view kRunKeys[] = {
    "commit", "toolchain", "device", "seed", "geometry", "options"};

// A tensor as the launch left it, live entries only, packed, little-endian.
struct Tensor {
  Dtype dtype = Dtype::f32;         // element type
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::span<const std::byte> data;  // exactly tensor_bytes(dtype, shape) bytes
};

// What the comparer needs to know of a leaf besides its name and bytes.
struct LeafInfo {
  std::string repro;      // the command line that reproduces the case
  int rank_in_group = 0;  // of the writer; leaves pair by (rank_in_group, leaf)
  // Ranks that really launched the case as one group: T, or 1 where the run
  // emulates T (N < T).
  int group_ranks = 1;
  // Place of the case in the run's list, the same on every rank: orders cases
  // across ranks.
  int case_index = 0;
};

// Writes one world rank's two index files and, where asked, its tensors, into a
// partial tree. Every failure to write is a std::runtime_error of one sentence
// naming the file.
class RankWriter {
 public:
  RankWriter(std::filesystem::path tree, int world_rank, bool dump_tensors);

  // Adds a leaf in execution order. std::runtime_error where the name is no
  // leaf name or comes twice, where the data's size does not match, or where a
  // write fails.
  void add(std::string_view leaf, const Tensor& tensor, const LeafInfo& info);

  // Writes the digests and puts everything on the disk; call it once, after the
  // last add().
  void finish();

 private:
  std::filesystem::path tree_;  // the partial tree
  std::string rank_;            // rank_name() of the rank
  bool dump_tensors_;           // whether tensor files are written
  OutputFile lines_;            // rank0000.jsonl, as leaves come
  DigestList digests_;          // of every leaf so far
};

// The tree as a whole, from refusal to rename: world rank 0 only.
class TreeStage {
 public:
  // Refuses, with one std::runtime_error sentence, a DIR that exists (unless
  // force) and a parent that cannot be written. `subtrees` names trees below
  // DIR ({"base", "head"}); empty for one tree, DIR itself.
  TreeStage(const std::filesystem::path& dir, bool force,
            std::vector<std::string> subtrees = {});
  TreeStage(const TreeStage&) = delete;
  TreeStage& operator=(const TreeStage&) = delete;
  ~TreeStage() { abandon(); }

  // Where RankWriters write: the partial tree, or its subtree of that name.
  std::filesystem::path partial(std::string_view subtree = "") const;

  // Writes run.json and COMPLETE of every tree (`runs` in the order of the
  // subtrees, one for a single tree) and renames. To be called when all
  // `world_ranks` writers of each tree have finished. std::runtime_error where
  // a rank's files are missing or disagree, or a write or rename fails; DIR is
  // then as it was before.
  void complete(const std::vector<nlohmann::json>& runs, int world_ranks);

  // Removes the partial tree; nothing after complete().
  void abandon() noexcept;

 private:
  void publish();

  std::filesystem::path dir_;          // the tree's final name
  std::filesystem::path partial_;      // its sibling; empty once complete
  std::vector<std::string> subtrees_;  // {""} for a single tree
  bool force_;                         // whether an existing DIR is replaced
};

}  // namespace exact_topk::dumps
