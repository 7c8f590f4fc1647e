// SPDX-License-Identifier: Apache-2.0
//
// f64 references of a launch's first two stages (SPEC section 3): the hidden
// state, both RMSNorms and the four projections. SPEC leaves the order of their
// sums open, so they are judged within a tolerance; the references here carry
// the rounding of f64 sums only, since products of bf16 and f32 codes with bf16
// codes are exact in f64. The hidden state is the exception: its f32 sum has a
// fixed order, and it is reproduced bit for bit.
//
// A size that does not fit is std::invalid_argument.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/geometry.h"

namespace exact_topk::oracle {

// ((residual + p0) + p1) + ..., each sum rounded to f32.
std::vector<float> hidden_state(
    std::span<const float> residual,
    std::span<const std::span<const float>> partials);

// v * (1 / sqrt(mean(v^2) + eps)) * gamma.
std::vector<double> rms_norm(std::span<const float> v,
                             std::span<const float> gamma, double eps);
std::vector<double> rms_norm(std::span<const double> v,
                             std::span<const float> gamma, double eps);

// A part of a matrix's outputs, so that ranks can share a product.
struct OutputRange {
  int begin = 0;  // first output
  int end = -1;   // past the last; -1: all
};

// y[r][o] = sum_i matrix[o][i] * x[r][i] for the outputs of the range, rows one
// after another, each (end - begin) long. x is `rows` rows of `inputs` bf16
// codes. The matrix is given whole, whatever the range.
std::vector<double> project(std::span<const std::uint16_t> matrix_bf16,
                            int outputs, int inputs,
                            std::span<const std::uint16_t> x_bf16, int rows,
                            OutputRange range = {});
std::vector<double> project(std::span<const float> matrix_f32, int outputs,
                            int inputs, std::span<const std::uint16_t> x_bf16,
                            int rows, OutputRange range = {});

// H^-1/2 * 128^-1/2: 1/64 for 32 heads.
double head_weight_factor(const Geometry& geometry);

}  // namespace exact_topk::oracle
