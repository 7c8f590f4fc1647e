// SPDX-License-Identifier: Apache-2.0
//
// --perturb: one flipped input bit, written
// launch0/step0/in/TENSOR:ELEMENT:BIT, or launch0/in/TENSOR:ELEMENT:BIT for a
// weight.
#pragma once

#include <cstddef>
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
// them (step 0, or none).
bool perturbs(const Perturb& perturb, const cases::InputInfo& input, int launch,
              int step);

// Flips the bit in a buffer that holds the elements [begin, ...) of the tensor;
// nothing where the element lies outside.
void flip(const Perturb& perturb, int64_t begin, int element_bytes,
          std::span<std::byte> elements);

}  // namespace exact_topk::harness
