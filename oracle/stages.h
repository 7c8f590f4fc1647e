// SPDX-License-Identifier: Apache-2.0
//
// The two bitwise stages of a launch (SPEC section 3, stages 3 and 4): index
// query and index key. Every product, sum, division and root is an f32
// operation rounded on its own, in the order that SPEC gives, so the results
// are the same bits on every backend; the oracle is built with
// -ffp-contract=off for it. A size that does not fit is std::invalid_argument.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/geometry.h"

namespace exact_topk::oracle {

using Head = std::array<float, kHeadDim>;  // one key, or one head of a query

// One position's row of the rope table.
struct RopeRow {
  std::span<const float> cos;  // [32]
  std::span<const float> sin;  // [32]
};

// A key as the cache keeps it.
struct CachedKey {
  std::array<std::uint8_t, kHeadDim> bytes{};  // e4m3 codes, by dim
  float scale = 0.0f;                          // value = code * scale
  bool operator==(const CachedKey&) const = default;
};

// Every intermediate of stage 4.
struct KeyStages {
  float mean = 0.0f;   // tree sum of the raw key over 128
  float var = 0.0f;    // tree sum of the squared deviations over 128
  Head layer_norm{};   // after gamma and beta
  Head rope{};         // after rope
  Head hadamard{};     // after the butterflies, before the factor; rope's
                       // values where the geometry has no Hadamard
  Head key{};          // as it is quantised
  CachedKey cached{};  // the outcome
};

// The steps that the stages are made of.
Head rope(const Head& head, RopeRow row, Rope pairing);
Head hadamard_butterflies(const Head& head);      // unnormalised
Head hadamard_factor(const Head& head);           // times f32(128^-1/2)
CachedKey quantise(const Head& key, Scale, Fp8);  // key -> bytes and scale

// The mailbox of one row, [H][128], to bf16 codes of the query as multiplied.
std::vector<std::uint16_t> index_query(std::span<const float> mailbox,
                                       RopeRow row, const Geometry& geometry);

// A raw key [128] to what is cached; gamma and beta are [128].
KeyStages key_stages(std::span<const float> raw, std::span<const float> gamma,
                     std::span<const float> beta, RopeRow row,
                     const Geometry& geometry);
CachedKey index_key(std::span<const float> raw, std::span<const float> gamma,
                    std::span<const float> beta, RopeRow row,
                    const Geometry& geometry);

}  // namespace exact_topk::oracle
