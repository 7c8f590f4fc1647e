// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/bitwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "oracle/formats.h"
#include "oracle/pages.h"

namespace exact_topk::harness {

std::string query_fault(std::span<const uint16_t> got,
                        std::span<const uint16_t> reference) {
  size_t faults = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != reference[i] && faults++ == 0) first = i;
  if (faults == 0) return "";
  return fmt::format(
      "head {} dim {} is {:#06x} ({:.9g}), must be {:#06x} ({:.9g}); {} of {} "
      "elements differ",
      first / oracle::kHeadDim, first % oracle::kHeadDim, got[first],
      oracle::bf16_to_f32(got[first]), reference[first],
      oracle::bf16_to_f32(reference[first]), faults, got.size());
}

std::string key_fault(const oracle::CachedKey& got,
                      const oracle::CachedKey& reference, int64_t slot) {
  const auto scale = std::bit_cast<uint32_t>(got.scale);
  const auto scale_reference = std::bit_cast<uint32_t>(reference.scale);
  if (scale != scale_reference)
    return fmt::format(
        "the scale in slot {} is {:.9g} ({:#010x}), must be "
        "{:.9g} ({:#010x})",
        slot, got.scale, scale, reference.scale, scale_reference);
  const auto [mine, theirs] = std::mismatch(got.bytes.begin(), got.bytes.end(),
                                            reference.bytes.begin());
  if (mine == got.bytes.end()) return "";
  return fmt::format("dim {} of the key in slot {} is {:#04x}, must be {:#04x}",
                     mine - got.bytes.begin(), slot, *mine, *theirs);
}

oracle::CachedKey cached_key(std::span<const uint8_t> cache, int64_t slot,
                             oracle::PageLayout layout) {
  oracle::CachedKey key;
  for (int dim = 0; dim < oracle::kHeadDim; ++dim)
    key.bytes[size_t(dim)] = cache[oracle::key_byte(slot, dim, layout)];
  std::memcpy(&key.scale, &cache[oracle::scale_byte(slot)], sizeof key.scale);
  return key;
}

}  // namespace exact_topk::harness
