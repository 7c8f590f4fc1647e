// SPDX-License-Identifier: Apache-2.0
//
// The two bitwise stages (SPEC section 6, check 3): index query and index key,
// bit for bit against the oracle.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "oracle/stages.h"

namespace exact_topk::harness {

// What is wrong, empty where nothing is.
std::string query_fault(std::span<const uint16_t> got,
                        std::span<const uint16_t> reference);
std::string key_fault(const oracle::CachedKey& got,
                      const oracle::CachedKey& reference, int64_t slot);

// The key that a layer's cache holds in a slot.
oracle::CachedKey cached_key(std::span<const uint8_t> cache, int64_t slot,
                             oracle::PageLayout layout);

}  // namespace exact_topk::harness
