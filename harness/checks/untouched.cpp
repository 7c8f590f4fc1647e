// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/untouched.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/abi.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

// The first index at which two pieces of memory of one size differ; -1: none.
int64_t mismatch(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return -1;
  return std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
}

// Hands the tensor's bytes to `look(chunk, offset)`, which returns the first
// byte at fault or -1, until one is.
template <typename Look>
int64_t search(Candidate& candidate, xtk_tensor tensor, int layer,
               uint64_t bytes, Look look) {
  if (const std::byte* view = candidate.view(tensor, layer))
    return look(std::span(view, bytes), 0);
  std::vector<std::byte> chunk;
  for (uint64_t offset = 0; offset < bytes; offset += kChunkBytes) {
    chunk.resize(std::min(kChunkBytes, bytes - offset));
    candidate.read(tensor, layer, offset, chunk);
    if (const int64_t at = look(std::span<const std::byte>(chunk), offset);
        at >= 0)
      return at;
  }
  return -1;
}

}  // namespace

void CacheImage::take_slot(std::span<const std::byte> now, int64_t slot,
                           oracle::PageLayout layout) {
  const int64_t page = slot / oracle::kPageTokens;
  const auto base = size_t(page * oracle::kPageBytes);
  auto [held, fresh] = pages_.try_emplace(page);
  if (fresh)
    std::copy_n(before_.begin() + int64_t(base), oracle::kPageBytes,
                held->second.begin());
  const auto take = [&](size_t at) { held->second[at - base] = now[at]; };
  for (int dim = 0; dim < oracle::kHeadDim; ++dim)
    take(oracle::key_byte(slot, dim, layout));
  for (size_t i = 0; i < sizeof(float); ++i) take(oracle::scale_byte(slot) + i);
}

int64_t CacheImage::first_difference(std::span<const std::byte> now,
                                     uint64_t offset) const {
  // Runs of pages without a copy are compared at once.
  const uint64_t end = offset + now.size();
  uint64_t at = offset;
  const auto compare = [&](uint64_t until,
                           std::span<const std::byte> expected) -> int64_t {
    const int64_t found = mismatch(now.subspan(at - offset, until - at),
                                   expected.first(until - at));
    return found < 0 ? -1 : int64_t(at) + found;
  };
  for (auto page = pages_.upper_bound(int64_t(at / oracle::kPageBytes) - 1);
       at < end; ++page) {
    const uint64_t begin =
        page == pages_.end()
            ? end
            : std::min(end, uint64_t(page->first) * oracle::kPageBytes);
    if (at < begin) {
      if (const int64_t found = compare(begin, before_.subspan(at)); found >= 0)
        return found;
      at = begin;
    }
    if (at == end) break;
    const uint64_t page_begin = uint64_t(page->first) * oracle::kPageBytes;
    const uint64_t until = std::min(end, page_begin + oracle::kPageBytes);
    const std::span<const std::byte> copy(page->second);
    if (const int64_t found = compare(until, copy.subspan(at - page_begin));
        found >= 0)
      return found;
    at = until;
  }
  return -1;
}

std::string input_fault(Candidate& candidate, const LaunchInputs& inputs,
                        cases::Input input, int launch) {
  const std::span<const std::byte> before = inputs.bytes(input, launch);
  const cases::InputInfo& about = inputs.info(input);
  const bool a_layer = about.lifetime == cases::Lifetime::kLayer;
  const int64_t at = search(
      candidate, abi_tensor(input), a_layer ? launch : 0, before.size(),
      [&](std::span<const std::byte> now, uint64_t offset) {
        const int64_t found = mismatch(now, before.subspan(offset, now.size()));
        return found < 0 ? -1 : int64_t(offset) + found;
      });
  if (at < 0) return "";
  return fmt::format("the input {} changed at element {}{}", about.name,
                     at / cases::element_bytes(about.dtype),
                     a_layer ? fmt::format(" of layer {}", launch) : "");
}

std::string cache_fault(Candidate& candidate, const CacheImage& image,
                        int layer, uint64_t bytes) {
  const int64_t at =
      search(candidate, XTK_CACHE, layer, bytes,
             [&](std::span<const std::byte> now, uint64_t offset) {
               return image.first_difference(now, offset);
             });
  if (at < 0) return "";
  return fmt::format(
      "the cache of layer {} changed outside the rows' own slots: byte {} of "
      "page {}",
      layer, at % oracle::kPageBytes, at / oracle::kPageBytes);
}

void filled(const Filling& filling, xtk_tensor tensor, uint64_t begin,
            std::span<std::byte> out) {
  cases::output_pattern(filling.seed, filling.launch, filling.step,
                        filling.attempt, int(tensor), begin, out);
}

void fill_output(Candidate& candidate, const Filling& filling,
                 xtk_tensor tensor, uint64_t bytes) {
  std::vector<std::byte> chunk;
  for (uint64_t offset = 0; offset < bytes; offset += kChunkBytes) {
    chunk.resize(std::min(kChunkBytes, bytes - offset));
    filled(filling, tensor, offset, chunk);
    candidate.write(tensor, 0, offset, chunk);
  }
}

std::string outside_fault(std::span<const std::byte> now,
                          std::span<const Extent> own, const Filling& filling,
                          xtk_tensor tensor) {
  std::vector<std::byte> expected;
  uint64_t at = 0;
  for (size_t i = 0; i <= own.size(); ++i) {
    const uint64_t end = i < own.size() ? own[i].begin : now.size();
    while (at < end) {
      expected.resize(std::min(kChunkBytes, end - at));
      filled(filling, tensor, at, expected);
      const int64_t found =
          mismatch(now.subspan(at, expected.size()), expected);
      if (found >= 0)
        return fmt::format(
            "byte {} of {} was written, which belongs to no row's result",
            at + uint64_t(found), output_name(tensor));
      at += expected.size();
    }
    if (i < own.size()) at = own[i].begin + own[i].bytes;
  }
  return "";
}

std::string output_fault(const LaunchOutputs& outputs,
                         const OutputLayout& layout, const cases::Step& step,
                         const Filling& filling, xtk_tensor tensor,
                         bool clobbers_score_tail) {
  const uint64_t stride = layout.bytes(tensor) / step.rows.size();
  std::vector<Extent> own;
  for (size_t row = 0; row < step.rows.size(); ++row) {
    if (!step.rows[row].live) continue;
    Extent extent = layout.row(tensor, step, int(row));
    if (tensor == XTK_SCORES && clobbers_score_tail) extent.bytes = stride;
    own.push_back(extent);
  }
  std::sort(own.begin(), own.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  return outside_fault(outputs.bytes(tensor), own, filling, tensor);
}

}  // namespace exact_topk::harness
