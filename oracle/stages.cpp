// SPDX-License-Identifier: Apache-2.0
#include "oracle/stages.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "oracle/formats.h"

namespace exact_topk::oracle {
namespace {

constexpr float kHadamardFactor = std::bit_cast<float>(0x3DB504F3u);
constexpr float kAmaxFloor = 1e-4f;

void require_size(const char* what, std::size_t size, std::size_t expected) {
  if (size != expected)
    throw std::invalid_argument(std::string(what) + " has " +
                                std::to_string(size) + " elements, not " +
                                std::to_string(expected));
}

void require_rope_row(RopeRow row) {
  require_size("the rope row's cos", row.cos.size(), kRopeDims / 2);
  require_size("the rope row's sin", row.sin.size(), kRopeDims / 2);
}

Head to_head(const char* what, std::span<const float> values) {
  require_size(what, values.size(), kHeadDim);
  Head head;
  std::ranges::copy(values, head.begin());
  return head;
}

// t[i] += t[i + 64] for i < 64, then + 32, ... + 1.
float tree_sum(Head t) {
  for (std::size_t half = kHeadDim / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) t[i] += t[i + half];
  return t[0];
}

}  // namespace

Head rope(const Head& head, RopeRow row, Rope pairing) {
  require_rope_row(row);
  Head out = head;
  for (std::size_t i = 0; i < kRopeDims / 2; ++i) {
    const bool interleaved = pairing == Rope::kInterleaved;
    const std::size_t first = interleaved ? 2 * i : i;
    const std::size_t second = interleaved ? 2 * i + 1 : i + kRopeDims / 2;
    const float a = head[first], b = head[second];
    out[first] = a * row.cos[i] - b * row.sin[i];
    out[second] = b * row.cos[i] + a * row.sin[i];
  }
  return out;
}

Head hadamard_butterflies(const Head& head) {
  Head out = head;
  for (std::size_t stride = 1; stride < kHeadDim; stride *= 2) {
    for (std::size_t base = 0; base < kHeadDim; base += 2 * stride) {
      for (std::size_t i = base; i < base + stride; ++i) {
        const float a = out[i], b = out[i + stride];
        out[i] = a + b;
        out[i + stride] = a - b;
      }
    }
  }
  return out;
}

Head hadamard_factor(const Head& head) {
  Head out = head;
  for (float& value : out) value *= kHadamardFactor;
  return out;
}

CachedKey quantise(const Head& key, Scale scale, Fp8 format) {
  float amax = kAmaxFloor;
  for (const float value : key) amax = std::fmax(amax, std::fabs(value));
  CachedKey cached;
  cached.scale = key_scale(amax, scale, format);
  for (std::size_t i = 0; i < kHeadDim; ++i)
    cached.bytes[i] = f32_to_e4m3(key[i] / cached.scale, format);
  return cached;
}

std::vector<std::uint16_t> index_query(std::span<const float> mailbox,
                                       RopeRow row, const Geometry& geometry) {
  const std::size_t heads = static_cast<std::size_t>(geometry.heads);
  require_size("the mailbox", mailbox.size(), heads * kHeadDim);
  std::vector<std::uint16_t> query(mailbox.size());
  for (std::size_t h = 0; h < heads; ++h) {
    Head head = rope(to_head("a head", mailbox.subspan(h * kHeadDim, kHeadDim)),
                     row, geometry.rope);
    if (geometry.hadamard) head = hadamard_factor(hadamard_butterflies(head));
    std::ranges::transform(head, query.begin() + std::ptrdiff_t(h * kHeadDim),
                           f32_to_bf16);
  }
  return query;
}

KeyStages key_stages(std::span<const float> raw, std::span<const float> gamma,
                     std::span<const float> beta, RopeRow row,
                     const Geometry& geometry) {
  require_size("gamma", gamma.size(), kHeadDim);
  require_size("beta", beta.size(), kHeadDim);
  const Head key = to_head("the raw key", raw);

  KeyStages stages;
  stages.mean = tree_sum(key) / 128.0f;
  Head deviation, square;
  for (std::size_t i = 0; i < kHeadDim; ++i) {
    deviation[i] = key[i] - stages.mean;
    square[i] = deviation[i] * deviation[i];
  }
  stages.var = tree_sum(square) / 128.0f;
  const float rstd = 1.0f / std::sqrt(stages.var + geometry.layer_norm_eps);
  for (std::size_t i = 0; i < kHeadDim; ++i)
    stages.layer_norm[i] = (deviation[i] * rstd) * gamma[i] + beta[i];

  stages.rope = rope(stages.layer_norm, row, geometry.rope);
  stages.hadamard =
      geometry.hadamard ? hadamard_butterflies(stages.rope) : stages.rope;
  stages.key =
      geometry.hadamard ? hadamard_factor(stages.hadamard) : stages.rope;
  stages.cached = quantise(stages.key, geometry.scale, geometry.fp8);
  return stages;
}

CachedKey index_key(std::span<const float> raw, std::span<const float> gamma,
                    std::span<const float> beta, RopeRow row,
                    const Geometry& geometry) {
  return key_stages(raw, gamma, beta, row, geometry).cached;
}

}  // namespace exact_topk::oracle
