// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "dumps/leaf.h"
#include "dumps/mapped_file.h"
#include "dumps/paths.h"
#include "dumps/sha256.h"
#include "dumps/tree.h"

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  // A path that cannot be looked at is no reason yet: making the tree beside it
  // will say what is wrong.
  const fs::file_type type = fs::symlink_status(path, error).type();
  return type != fs::file_type::not_found && type != fs::file_type::none;
}

// Whether --force may replace it: an empty directory, a digest tree, or a
// directory of nothing but digest trees.
bool is_replaceable(const fs::path& path) {
  if (!fs::is_directory(fs::symlink_status(path))) return false;
  if (fs::exists(path / kCompleteFile)) return true;
  return std::ranges::all_of(fs::directory_iterator(path),
                             [](const fs::directory_entry& entry) {
                               return fs::exists(entry.path() / kCompleteFile);
                             });
}

// The absolute name, without a trailing slash, so that its parent and its
// siblings can be named. The name itself may be a link, which is not followed.
fs::path sibling_base(const fs::path& dir) {
  fs::path path = dir.has_filename() ? dir : dir.parent_path();
  const fs::path name = path.filename();
  if (name == "." || name == "..")
    path = resolved(path);
  else if (!name.empty())
    path = resolved(path.has_parent_path() ? path.parent_path() : ".") / name;
  if (path.filename().empty()) {
    throw std::runtime_error(fmt::format(
        "cannot write a dump to \"{}\": it names no directory", dir.string()));
  }
  return path;
}

fs::path make_partial(const fs::path& dir) {
  // A process that died may have left the name of a process id that has come
  // round again.
  for (int attempt = 0;; ++attempt) {
    const std::string again = attempt == 0 ? "" : fmt::format(".{}", attempt);
    const fs::path path =
        dir.parent_path() / fmt::format(".{}.partial-{}{}",
                                        dir.filename().string(), ::getpid(),
                                        again);
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error)
      throw std::runtime_error(fmt::format("cannot write a dump to {}: {}",
                                           dir.string(), error.message()));
  }
}

void write_synced(const fs::path& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.close(OutputFile::Sync::yes);
}

void sync_directory(const fs::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced)
    throw std::runtime_error(
        fmt::format("cannot sync {}: {}", path.string(), std::strerror(error)));
}

std::string pretty(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

// Adds every tensor file below the folder, with its leaf's digest.
void list_tensors(const fs::path& folder, const DigestList& digests,
                  nlohmann::json& files) {
  std::size_t found = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    const std::string leaf = entry.path().lexically_relative(folder).string();
    const auto digest = digests.find(leaf);
    if (digest == digests.end())
      throw std::runtime_error(
          fmt::format("{} is no leaf of its rank", entry.path().string()));
    files[fmt::format("{}/{}", folder.filename().string(), leaf)] =
        digest->second;
    ++found;
  }
  if (found != digests.size()) {
    throw std::runtime_error(fmt::format("{} holds {} tensors for {} leaves",
                                         folder.string(), found,
                                         digests.size()));
  }
}

// The contents of COMPLETE for a tree whose other files are all written.
nlohmann::json describe_tree(const fs::path& tree, int world_ranks) {
  nlohmann::json files;
  const auto add_file = [&](const std::string& name) {
    files[name] = sha256_hex(MappedFile(tree / name).bytes());
  };
  nlohmann::json leaves;
  for (const LeafKind kind : kLeafKinds)
    leaves[std::string(leaf_kind_name(kind))] = 0;
  add_file(std::string(kRunFile));
  for (int rank = 0; rank < world_ranks; ++rank) {
    const std::string name = rank_name(rank);
    const std::string digests_file = fmt::format("{}{}", name, kDigestsSuffix);
    add_file(digests_file);
    add_file(fmt::format("{}{}", name, kLinesSuffix));
    const DigestList digests = read_digest_list(tree / digests_file);
    for (const auto& [leaf, digest] : digests) {
      nlohmann::json& count =
          leaves[std::string(leaf_kind_name(parse_leaf(leaf).kind))];
      count = count.get<std::int64_t>() + 1;
    }
    if (is_there(tree / name)) list_tensors(tree / name, digests, files);
  }
  return {{"schema", kTreeSchema},
          {"ranks", world_ranks},
          {"leaves", leaves},
          {"files", files}};
}

}  // namespace

TreeStage::TreeStage(const fs::path& dir, bool force,
                     std::vector<std::string> subtrees)
    : dir_(sibling_base(dir)), subtrees_(std::move(subtrees)), force_(force) {
  if (!force_ && is_there(dir_)) {
    throw std::runtime_error(
        fmt::format("{} exists already (--force replaces it)", dir_.string()));
  }
  if (force_ && is_there(dir_) && !is_replaceable(dir_)) {
    throw std::runtime_error(
        fmt::format("{} is no digest tree, and --force replaces nothing else",
                    dir_.string()));
  }
  partial_ = make_partial(dir_);
  if (subtrees_.empty()) subtrees_.emplace_back();
  for (const std::string& name : subtrees_)
    fs::create_directories(partial(name));
}

fs::path TreeStage::partial(std::string_view subtree) const {
  return subtree.empty() ? partial_ : partial_ / subtree;
}

void TreeStage::complete(const std::vector<nlohmann::json>& runs,
                         int world_ranks) {
  if (runs.size() != subtrees_.size()) {
    throw std::logic_error(fmt::format("{} identities for {} trees",
                                       runs.size(), subtrees_.size()));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const fs::path tree = partial(subtrees_[i]);
    nlohmann::json run = runs[i];
    for (const std::string_view key : kRunKeys) {
      if (!run.contains(key))
        throw std::logic_error(
            fmt::format("the run's identity lacks \"{}\"", key));
    }
    run["schema"] = kTreeSchema;
    write_synced(tree / kRunFile, pretty(run));
    write_synced(tree / kCompleteFile,
                 pretty(describe_tree(tree, world_ranks)));
    sync_directory(tree);
  }
  sync_directory(partial_);
  publish();
}

void TreeStage::publish() {
  const auto fail = [&](int error) {
    throw std::runtime_error(
        fmt::format("cannot rename the finished dump to {}: {}", dir_.string(),
                    std::strerror(error)));
  };
  const auto rename = [](const fs::path& from, const fs::path& to,
                         unsigned flags) {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0
               ? 0
               : errno;
  };
  const bool replace = force_ && is_there(dir_);
  int error =
      rename(partial_, dir_, replace ? RENAME_EXCHANGE : RENAME_NOREPLACE);
  if (error == EINVAL || error == ENOSYS) {
    // A file system without the flags: the old tree steps aside first and comes
    // back if the new one cannot take its place.
    const fs::path old = partial_.string() + ".old";
    if (!replace && is_there(dir_)) fail(EEXIST);
    if (replace && (error = rename(dir_, old, 0)) != 0) fail(error);
    error = rename(partial_, dir_, 0);
    if (replace && error != 0) rename(old, dir_, 0);
    if (replace && error == 0) partial_ = old;
  }
  if (error != 0) fail(error);
  // What is now called partial_ is the replaced tree, or nothing.
  abandon();
  sync_directory(dir_.parent_path());
}

void TreeStage::abandon() noexcept {
  std::error_code ignored;  // what cannot be removed stays under a name that
                            // nobody takes for a tree
  if (!partial_.empty()) fs::remove_all(partial_, ignored);
  partial_.clear();
}

}  // namespace exact_topk::dumps
