// SPDX-License-Identifier: Apache-2.0
#include "dumps/tree_reader.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "dumps/digest_list.h"
#include "dumps/mapped_file.h"
#include "dumps/sha256.h"

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& path) {
  const MappedFile file(path);
  json value = json::parse(file.text(), nullptr, false);
  if (!value.is_object())
    throw std::runtime_error(
        fmt::format("{} is no JSON object", path.string()));
  return value;
}

// A whole number of [least, INT_MAX] under the key, or a sentence that starts
// with `where`.
int number_field(const json& object, const char* key, int least,
                 const std::string& where) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_integer()) {
    const auto value = found->get<std::int64_t>();
    if (value >= least && value <= std::numeric_limits<int>::max())
      return static_cast<int>(value);
  }
  throw std::runtime_error(fmt::format(
      "{} has no whole number \"{}\" of at least {}", where, key, least));
}

const std::string& string_field(const json& object, const char* key,
                                const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    throw std::runtime_error(
        fmt::format("{} has no string \"{}\"", where, key));
  }
  return found->get_ref<const std::string&>();
}

const json& object_field(const json& object, const char* key,
                         const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) {
    throw std::runtime_error(
        fmt::format("{} has no object \"{}\"", where, key));
  }
  return *found;
}

// Every file of the tree but COMPLETE, relative to it. Links and special files
// are no part of a tree.
std::set<std::string> files_of(const fs::path& tree) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(tree)) {
    const fs::file_status status = entry.symlink_status();
    if (fs::is_directory(status)) continue;
    if (!fs::is_regular_file(status)) {
      throw std::runtime_error(
          fmt::format("{} is no regular file", entry.path().string()));
    }
    names.insert(entry.path().lexically_relative(tree).string());
  }
  names.erase(std::string(kCompleteFile));
  return names;
}

// Holds the files that are there to the digests of COMPLETE.
void check_files(const fs::path& tree, const std::set<std::string>& present,
                 const json& listed) {
  for (const auto& [name, digest] : listed.items()) {
    if (!present.contains(name))
      throw std::runtime_error(
          fmt::format("{} is missing", (tree / name).string()));
    if (!digest.is_string() ||
        !is_digest(digest.get_ref<const std::string&>())) {
      throw std::runtime_error(fmt::format(
          "{} has no SHA-256 of {}", (tree / kCompleteFile).string(), name));
    }
    if (sha256_hex(MappedFile(tree / name).bytes()) !=
        digest.get_ref<const std::string&>()) {
      throw std::runtime_error(
          fmt::format("{} does not match its SHA-256 in {}",
                      (tree / name).string(), kCompleteFile));
    }
  }
  for (const std::string& name : present) {
    if (!listed.contains(name)) {
      throw std::runtime_error(fmt::format(
          "{} is not named in {}", (tree / name).string(), kCompleteFile));
    }
  }
}

// What COMPLETE cannot name: a tree's folders are those of its files.
void check_folders(const fs::path& tree) {
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(tree))
    if (entry.is_directory() && fs::is_empty(entry.path()))
      throw std::runtime_error(fmt::format(
          "{} is an empty folder, which no tree has", entry.path().string()));
}

TreeLeaf parse_line(std::string_view text, const std::string& where) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) throw std::runtime_error(where + " is no JSON object");
  TreeLeaf leaf;
  leaf.leaf = string_field(line, "leaf", where);
  leaf.name = parse_leaf(leaf.leaf);
  leaf.digest = string_field(line, "sha256", where);
  leaf.dtype = dtype_from_name(string_field(line, "dtype", where));
  const auto shape = line.find("shape");
  if (shape == line.end() || !shape->is_array())
    throw std::runtime_error(where + " has no array \"shape\"");
  for (const json& dimension : *shape) {
    if (!dimension.is_number_integer())
      throw std::runtime_error(where +
                               " has a shape that is no array of integers");
    leaf.shape.push_back(dimension.get<std::int64_t>());
  }
  tensor_bytes(leaf.dtype, leaf.shape);
  leaf.info.repro = string_field(line, "repro", where);
  leaf.info.rank_in_group = number_field(line, "rank_in_group", 0, where);
  leaf.info.group_ranks =
      number_field(line, "group_ranks", leaf.info.rank_in_group + 1, where);
  leaf.info.case_index = number_field(line, "case_index", 0, where);
  return leaf;
}

// The leaves of one world rank, from its two index files.
std::vector<TreeLeaf> read_rank(const fs::path& tree, int rank) {
  const std::string name = rank_name(rank);
  const DigestList digests =
      read_digest_list(tree / fmt::format("{}{}", name, kDigestsSuffix));
  const fs::path lines_path = tree / fmt::format("{}{}", name, kLinesSuffix);
  const bool has_tensors = fs::exists(tree / name);
  const MappedFile file(lines_path);
  std::string_view text = file.text();
  std::vector<TreeLeaf> leaves;
  std::set<std::string_view> seen;
  leaves.reserve(digests.size());
  while (!text.empty()) {
    const std::string where =
        fmt::format("{} line {}", lines_path.string(), leaves.size() + 1);
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos)
      throw std::runtime_error(where + " does not end with a newline");
    TreeLeaf leaf = parse_line(text.substr(0, end), where);
    text.remove_prefix(end + 1);
    const auto listed = digests.find(leaf.leaf);
    if (listed == digests.end() || listed->second != leaf.digest) {
      throw std::runtime_error(fmt::format("{} disagrees with {}{} on {}",
                                           where, name, kDigestsSuffix,
                                           leaf.leaf));
    }
    if (!seen.insert(listed->first).second)
      throw std::runtime_error(fmt::format("{} repeats {}", where, leaf.leaf));
    leaf.sequence = static_cast<std::int64_t>(leaves.size());
    if (has_tensors) leaf.tensor = tree / name / leaf.leaf;
    leaves.push_back(std::move(leaf));
  }
  if (leaves.size() != digests.size()) {
    throw std::runtime_error(fmt::format("{} has {} leaves where {}{} has {}",
                                         lines_path.string(), leaves.size(),
                                         name, kDigestsSuffix, digests.size()));
  }
  return leaves;
}

// What the ranks must agree on: one writer a leaf and rank in group; one place
// and one group size a case.
void check_ranks(const Tree& tree) {
  std::set<std::pair<int, std::string_view>> written;
  std::map<std::string_view, std::pair<int, int>> cases;
  for (const TreeLeaf& leaf : tree.leaves) {
    if (!written.emplace(leaf.info.rank_in_group, leaf.leaf).second) {
      throw std::runtime_error(
          fmt::format("{}: two ranks wrote {} as rank {} of their group",
                      tree.path.string(), leaf.leaf, leaf.info.rank_in_group));
    }
    const std::pair facts(leaf.info.case_index, leaf.info.group_ranks);
    if (cases.emplace(leaf.name.case_name, facts).first->second != facts) {
      throw std::runtime_error(
          fmt::format("{}: the leaves of {} disagree on the case's place or "
                      "the size of its group",
                      tree.path.string(), leaf.name.case_name));
    }
  }
}

void check_counts(const Tree& tree, const json& counts,
                  const std::string& complete) {
  std::map<LeafKind, int> found;
  for (const TreeLeaf& leaf : tree.leaves) ++found[leaf.name.kind];
  for (const LeafKind kind : kLeafKinds) {
    const int listed = number_field(
        counts, std::string(leaf_kind_name(kind)).c_str(), 0, complete);
    if (listed != found[kind]) {
      throw std::runtime_error(
          fmt::format("{} counts {} {} leaves where there are {}", complete,
                      listed, leaf_kind_name(kind), found[kind]));
    }
  }
  if (tree.leaves.empty())
    throw std::runtime_error(
        fmt::format("{} has no leaf to compare", tree.path.string()));
}

void check_schema(const json& object, const std::string& where) {
  if (const std::string& schema = string_field(object, "schema", where);
      schema != kTreeSchema) {
    throw std::runtime_error(
        fmt::format("{} has schema {}, not {}", where, schema, kTreeSchema));
  }
}

}  // namespace

Tree read_tree(const fs::path& path) {
  if (!fs::is_directory(path))
    throw std::runtime_error(fmt::format("{} is no directory", path.string()));
  const fs::path complete_path = path / kCompleteFile;
  if (!fs::exists(complete_path)) {
    throw std::runtime_error(fmt::format("{} has no {}: it is no finished dump",
                                         path.string(), kCompleteFile));
  }
  const json complete = read_json(complete_path);
  const std::string where = complete_path.string();
  check_schema(complete, where);
  const json& listed = object_field(complete, "files", where);
  check_files(path, files_of(path), listed);
  check_folders(path);

  Tree tree{.path = path,
            .run = read_json(path / kRunFile),
            .ranks = number_field(complete, "ranks", 1, where),
            .leaves = {}};
  const std::string run_path = (path / kRunFile).string();
  check_schema(tree.run, run_path);
  for (const std::string_view key : kRunKeys) {
    if (!tree.run.contains(key))
      throw std::runtime_error(fmt::format("{} has no \"{}\"", run_path, key));
  }
  std::size_t expected_files = 1 + 2 * static_cast<std::size_t>(tree.ranks);
  for (int rank = 0; rank < tree.ranks; ++rank) {
    for (TreeLeaf& leaf : read_rank(path, rank)) {
      if (!leaf.tensor.empty()) {
        ++expected_files;
        const std::string file =
            fmt::format("{}/{}", rank_name(rank), leaf.leaf);
        if (const auto named = listed.find(file);
            named == listed.end() || *named != leaf.digest)
          throw std::runtime_error(fmt::format("{} and {}{} disagree on {}",
                                               where, rank_name(rank),
                                               kDigestsSuffix, leaf.leaf));
      }
      tree.leaves.push_back(std::move(leaf));
    }
  }
  if (listed.size() != expected_files) {
    throw std::runtime_error(fmt::format(
        "{} names {} files where {} ranks with their tensors have {}", where,
        listed.size(), tree.ranks, expected_files));
  }
  check_ranks(tree);
  check_counts(tree, object_field(complete, "leaves", where), where);
  return tree;
}

}  // namespace exact_topk::dumps
