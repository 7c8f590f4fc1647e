// SPDX-License-Identifier: Apache-2.0
#include "oracle/front.h"

#include <Eigen/Core>
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/formats.h"

namespace exact_topk::oracle {
namespace {

using RowMajor =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void require_size(const char* what, std::size_t size, std::size_t expected) {
  if (size != expected)
    throw std::invalid_argument(std::string(what) + " has " +
                                std::to_string(size) + " elements, not " +
                                std::to_string(expected));
}

double decoded(std::uint16_t code) { return double{bf16_to_f32(code)}; }
double decoded(float value) { return double{value}; }

template <typename T>
std::vector<double> rms_norm_of(std::span<const T> v,
                                std::span<const float> gamma, double eps) {
  require_size("gamma", gamma.size(), v.size());
  double squares = 0.0;
  for (const double value : v) squares += value * value;
  const double factor =
      1.0 / std::sqrt(squares / static_cast<double>(v.size()) + eps);
  std::vector<double> out(v.size());
  for (std::size_t i = 0; i < v.size(); ++i)
    out[i] = double{v[i]} * factor * double{gamma[i]};
  return out;
}

// A few outputs at a time are decoded while they lie in the cache, then
// multiplied by all rows in one product.
template <typename T>
std::vector<double> project_any(std::span<const T> matrix, int outputs,
                                int inputs,
                                std::span<const std::uint16_t> x_bf16, int rows,
                                OutputRange range) {
  const std::size_t width = static_cast<std::size_t>(inputs);
  require_size("the matrix", matrix.size(),
               static_cast<std::size_t>(outputs) * width);
  require_size("the projection's input", x_bf16.size(),
               static_cast<std::size_t>(rows) * width);
  const int end = range.end < 0 ? outputs : range.end;
  if (range.begin < 0 || range.begin > end || end > outputs)
    throw std::invalid_argument("outputs " + std::to_string(range.begin) +
                                " to " + std::to_string(end) + " are not of " +
                                std::to_string(outputs));

  RowMajor x(rows, inputs);
  for (std::size_t i = 0; i < x_bf16.size(); ++i)
    x.data()[i] = decoded(x_bf16[i]);

  const int count = end - range.begin;
  std::vector<double> out(static_cast<std::size_t>(rows) *
                          static_cast<std::size_t>(count));
  Eigen::Map<RowMajor> y(out.data(), rows, count);
  Eigen::VectorXd weights(inputs);
  for (int o = 0; o < count; ++o) {
    const std::span<const T> codes = matrix.subspan(
        static_cast<std::size_t>(range.begin + o) * width, width);
    for (std::size_t i = 0; i < width; ++i)
      weights.data()[i] = decoded(codes[i]);
    y.col(o).noalias() = x * weights;
  }
  return out;
}

}  // namespace

std::vector<float> hidden_state(
    std::span<const float> residual,
    std::span<const std::span<const float>> partials) {
  std::vector<float> hidden(residual.begin(), residual.end());
  for (const std::span<const float> partial : partials) {
    require_size("a partial sum", partial.size(), hidden.size());
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += partial[i];
  }
  return hidden;
}

std::vector<double> rms_norm(std::span<const float> v,
                             std::span<const float> gamma, double eps) {
  return rms_norm_of(v, gamma, eps);
}

std::vector<double> rms_norm(std::span<const double> v,
                             std::span<const float> gamma, double eps) {
  return rms_norm_of(v, gamma, eps);
}

std::vector<double> project(std::span<const std::uint16_t> matrix_bf16,
                            int outputs, int inputs,
                            std::span<const std::uint16_t> x_bf16, int rows,
                            OutputRange range) {
  return project_any(matrix_bf16, outputs, inputs, x_bf16, rows, range);
}

std::vector<double> project(std::span<const float> matrix_f32, int outputs,
                            int inputs, std::span<const std::uint16_t> x_bf16,
                            int rows, OutputRange range) {
  return project_any(matrix_f32, outputs, inputs, x_bf16, rows, range);
}

double head_weight_factor(const Geometry& geometry) {
  return 1.0 / std::sqrt(static_cast<double>(geometry.heads) * kHeadDim);
}

}  // namespace exact_topk::oracle
