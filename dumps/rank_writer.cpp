// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "dumps/leaf.h"
#include "dumps/sha256.h"
#include "dumps/tree.h"

namespace exact_topk::dumps {
namespace {

void create_parents(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw std::runtime_error(fmt::format(
        "cannot create {}: {}", file.parent_path().string(), error.message()));
}

// Everything written below the folder reaches the disk: one call instead of an
// fsync for each of many thousand tensors.
void sync_file_system(const std::filesystem::path& folder) {
  const int descriptor =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced)
    throw std::runtime_error(fmt::format("cannot sync {}: {}", folder.string(),
                                         std::strerror(error)));
}

}  // namespace

std::string rank_name(int world_rank) {
  return fmt::format("rank{:04}", world_rank);
}

RankWriter::RankWriter(std::filesystem::path tree, int world_rank,
                       bool dump_tensors)
    : tree_(std::move(tree)),
      rank_(rank_name(world_rank)),
      dump_tensors_(dump_tensors),
      lines_(tree_ / fmt::format("{}{}", rank_, kLinesSuffix)) {}

void RankWriter::add(std::string_view leaf, const Tensor& tensor,
                     const LeafInfo& info) {
  parse_leaf(leaf);
  const std::size_t expected = tensor_bytes(tensor.dtype, tensor.shape);
  if (tensor.data.size() != expected) {
    throw std::runtime_error(
        fmt::format("leaf {} has {} bytes where its dtype and shape take {}",
                    leaf, tensor.data.size(), expected));
  }
  const std::string header = npy_header(tensor.dtype, tensor.shape);
  Sha256 sha;
  sha.update(header);
  sha.update(tensor.data);
  const auto [entry, added] =
      digests_.try_emplace(std::string(leaf), sha.hex());
  if (!added)
    throw std::runtime_error(
        fmt::format("leaf {} was dumped twice by {}", leaf, rank_));

  if (dump_tensors_) {
    const std::filesystem::path path = tree_ / rank_ / leaf;
    create_parents(path);
    OutputFile file(path);
    file.write(header);
    file.write(tensor.data);
    file.close(OutputFile::Sync::no);  // finish() syncs them all
  }

  nlohmann::ordered_json line;
  line["leaf"] = leaf;
  line["sha256"] = entry->second;
  line["dtype"] = dtype_name(tensor.dtype);
  line["shape"] = tensor.shape;
  line["repro"] = info.repro;
  line["rank_in_group"] = info.rank_in_group;
  line["group_ranks"] = info.group_ranks;
  line["case_index"] = info.case_index;
  lines_.write(line.dump(-1, ' ', false,
                         nlohmann::ordered_json::error_handler_t::replace));
  lines_.write("\n");
}

void RankWriter::finish() {
  OutputFile digests(tree_ / fmt::format("{}{}", rank_, kDigestsSuffix));
  digests.write(format_digest_list(digests_));
  digests.close(OutputFile::Sync::yes);
  lines_.close(OutputFile::Sync::yes);
  if (dump_tensors_) sync_file_system(tree_);
}

}  // namespace exact_topk::dumps
