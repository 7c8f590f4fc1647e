// SPDX-License-Identifier: Apache-2.0
//
// --perturb: one flipped input bit, written
// launch0/step0/in/TENSOR:ELEMENT:BIT, or launch0/in/TENSOR:ELEMENT:BIT for a
// weight. What stands before the first colon is a leaf of a digest tree behind
// its case, with or without .npy, and the element is that of the leaf. "cache"
// may also be named, byte by byte as it lies in memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cases/inputs.h"
#include "harness/settings.h"

namespace exact_topk::harness {

// UsageError where the text has not that form.
Perturb parse_perturb(const std::string& text);
std::string to_string(const Perturb& perturb);

// UsageError unless every case that has such a tensor has the element and the
// bit, and at least one case has it.
void check_perturb(const Perturb& perturb,
                   const std::vector<cases::Case>& cases, uint64_t seed);

// Whether `perturb` names this input of this launch and step; a weight, the
// cache and the rope table are named by any step of their launch that fills
// them (step 0, or none), and the rope table, which is one for all launches, by
// any of them.
bool perturbs(const Perturb& perturb, const cases::InputInfo& input, int launch,
              int step);

// The bit where LaunchInputs fills it: a bit of the leaves cached_keys and
// cached_scales is one of the cache. Nothing where it lies outside the leaf.
std::optional<Perturb> in_input(const Perturb& perturb, const cases::Case& item,
                                const cases::Plan& plan);

// Flips the bit in the poison of a step, where it names poison_keys or
// poison_scales, which hold the live rows.
void flip(const Perturb& perturb, const cases::Step& rows, int launch, int step,
          cases::Poison& poison);

// Flips the bit in a buffer that holds the elements [begin, ...) of the tensor;
// nothing where the element lies outside.
void flip(const Perturb& perturb, int64_t begin, int element_bytes,
          std::span<std::byte> elements);

}  // namespace exact_topk::harness
