// SPDX-License-Identifier: Apache-2.0
//
// inputs.h - every input tensor of a case, any range of it, the same bytes on
// every machine.
//
// fill() writes the elements [begin, end) of a tensor into the caller's memory,
// so that ranks can fill parts of a shared window side by side. Values come
// from a counter-based generator (generator.h): weights by (seed, hidden,
// q_lora, heads, kind, layer, tensor, element), rows and caches by (seed, case
// name without tp, launch, step, element).
//
// Values are scaled so that activations are of order one: matrices are normal /
// sqrt(fan-in), gammas 1 + normal/10, beta normal/10, residual, embedding
// normal, partial sums normal/4. Normal values are sums of uniforms, made by
// exactly rounded operations alone (generator.h). The rope table is the one
// exception: SPEC section 3 defines it by pow, cos and sin in f64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/case.h"
#include "cases/plan.h"

namespace exact_topk::cases {

enum class Input {
  kEmbedding,
  kInputGamma,
  kQA,
  kQGamma,
  kWqB,
  kWk,
  kKGamma,
  kKBeta,
  kWeightsProj,
  kRopeCos,
  kRopeSin,
  kCache,
  kResidual,
  kPartials,
  kTokens,
  kRequests,
  kPositions,
  kSlots,
  kPageTable,
  kIndptr,
};
inline constexpr int kInputs = 20;  // Input(0) .. Input(kInputs - 1)

enum class DType { kF32, kBf16, kI32, kU8 };
int element_bytes(DType dtype);

// How often a tensor exists.
enum class Lifetime {
  kLayer,  // once a launch (layer): weights and the cache
  kCase,   // once: the rope table
  kStep  // anew at every step: depends on launch and step (residual, partials,
         // tokens) or on the step alone (the others)
};

struct InputInfo {
  std::string name;            // leaf name: "q_a"
  DType dtype = DType::kF32;   // of an element
  std::vector<int64_t> shape;  // row-major
  uint64_t bytes = 0;          // of the whole tensor
  Lifetime lifetime = Lifetime::kLayer;
  int64_t elements() const;
};

InputInfo info(Input input, const Case& c, const Plan& plan);

// Whether the case has the tensor: scoring alone has cache, requests, positions
// and page table, selecting alone none.
bool used(Input input, const Case& c);

// Writes elements [begin, end) into `out`, which holds exactly those. Elements
// of the cache are bytes. `launch` means nothing to tensors of Lifetime::kCase,
// `step` only something to Lifetime::kStep.
void fill(Input input, const Case& c, const Plan& plan, uint64_t seed,
          int launch, int step, int64_t begin, int64_t end,
          std::span<std::byte> out);

// What the own slots of live rows hold before a step.
struct Poison {
  std::vector<std::array<uint8_t, 128>>
      keys;  // [R], in dim order (the page layout is not applied); never NaN
  std::vector<float> scales;  // [R], 1e30
};
// `attempt` is 0 for the launch and counts its repeats from 1.
Poison poison(const Case& c, const Plan& plan, uint64_t seed, int launch,
              int step, int attempt);

// The pattern that output tensor number `tensor` holds before an attempt: bytes
// from `begin_byte` on.
void output_pattern(uint64_t seed, int launch, int step, int attempt,
                    int tensor, uint64_t begin_byte, std::span<std::byte> out);

// What scoring alone is fed besides cache and page table.
struct ScoreInputs {
  std::vector<uint16_t> query;  // bf16 [R][H][128], as after stage 3
  std::vector<float> weights;   // [R][H], the factor of SPEC section 3 included
};
// With `--fill integers`: queries, keys and weights are integers of magnitude
// at most 5 and scales powers of two, so that every sum of a score, in any
// order, has fewer than 24 bits.
ScoreInputs score_inputs(const Case& c, uint64_t seed);

}  // namespace exact_topk::cases
