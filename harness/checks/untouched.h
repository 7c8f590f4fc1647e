// SPDX-License-Identifier: Apache-2.0
//
// Every byte that a launch may not write is unchanged (SPEC section 6, check
// 4): inputs, slots other than the live rows' own in every layer's cache, pad
// rows, guard entries of the list, and scores at and past n.
//
// Memory is compared in place where the candidate allows it, else in chunks
// that are read. Nothing large is copied: the caches as they were before the
// case are the inputs that the group shares, and only the pages with own slots
// have copies (CacheImage).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "harness/launch_inputs.h"
#include "harness/launch_outputs.h"
#include "oracle/geometry.h"

namespace exact_topk::harness {

// What one layer's cache must hold.
class CacheImage {
 public:
  explicit CacheImage(std::span<const std::byte> before) : before_(before) {}
  // Takes over a slot that a launch was free to write, as `now` has it.
  void take_slot(std::span<const std::byte> now, int64_t slot,
                 oracle::PageLayout layout);
  // The first byte of a chunk that differs, counted from the cache's first; -1:
  // none.
  int64_t first_difference(std::span<const std::byte> now,
                           uint64_t offset) const;

 private:
  std::span<const std::byte> before_;  // before the case
  std::map<int64_t, std::array<std::byte, oracle::kPageBytes>>
      pages_;  // those that launches were free to write in
};

// What is wrong, empty where nothing is.
std::string input_fault(Candidate& candidate, const LaunchInputs& inputs,
                        cases::Input input, int launch);
std::string cache_fault(Candidate& candidate, const CacheImage& image,
                        int layer, uint64_t bytes);

// Which attempt filled the outputs.
struct Filling {
  uint64_t seed = 0;
  int launch = 0, step = 0, attempt = 0;
};
// Bytes of an output tensor as the attempt found them.
void filled(const Filling& filling, xtk_tensor tensor, uint64_t begin,
            std::span<std::byte> out);
// Fills an output tensor before an attempt.
void fill_output(Candidate& candidate, const Filling& filling,
                 xtk_tensor tensor, uint64_t bytes);
std::string output_fault(const LaunchOutputs& outputs,
                         const OutputLayout& layout, const cases::Step& step,
                         const Filling& filling, xtk_tensor tensor,
                         bool clobbers_score_tail);

// The same for a buffer outside any candidate: bytes of `now` outside `own`
// (ascending extents) that differ from the filling.
std::string outside_fault(std::span<const std::byte> now,
                          std::span<const Extent> own, const Filling& filling,
                          xtk_tensor tensor);

}  // namespace exact_topk::harness
