// SPDX-License-Identifier: Apache-2.0
//
// Device code of stages 3 and 4, called from kernels of the test's own, against
// every tensor of the vectors.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dumps/safetensors.h"
#include "kernels/stages/index_key.h"
#include "kernels/stages/index_query.h"

namespace exact_topk::tests {
namespace {

namespace k = exact_topk::kernels;

dumps::Safetensors vectors(const char* name) {
  return dumps::Safetensors(std::string(EXACT_TOPK_TEST_DATA) + "/vectors/" +
                            name + ".safetensors");
}

k::Geometry geometry() {
  return {.hidden = 64,
          .q_lora = 64,
          .heads = 32,
          .k = 2048,
          .rope = k::Rope::kInterleaved,
          .hadamard = true,
          .scale = k::Scale::kUe8m0,
          .fp8 = k::Fp8::kE4m3fn,
          .page_layout = k::PageLayout::kPlain,
          .layer_norm_eps = 1e-6f,
          .rms_eps = 1e-5f,
          .weight_factor = 1.0f};
}

// Every step of stage 4 for one key a block, as a wave computes it.
struct KeySteps {
  float *layer_norm, *rope_interleaved, *rope_half_split, *hadamard,
      *scale;      // [keys][128], scale [keys]
  uint8_t* bytes;  // [keys][128]
};

template <int Wave>
void store(const k::HeadVector<Wave>& v, float* rows) {
  for (int e = 0; e < v.kEach; ++e)
    rows[blockIdx.x * k::kHeadDim + static_cast<unsigned>(v.first_dim() + e)] =
        v.value[e];
}

template <int Wave>
__global__ void key_steps(const float* raw, const float* gamma,
                          const float* beta, const float* cosines,
                          const float* sines, k::Scale scale, KeySteps out) {
  const unsigned key = blockIdx.x;
  const float* c = cosines + key * k::kRopePairs;
  const float* s = sines + key * k::kRopePairs;
  const auto normed = k::layer_norm(
      k::HeadVector<Wave>::load(raw + key * k::kHeadDim), gamma, beta, 1e-6f);
  store<Wave>(normed, out.layer_norm);
  store<Wave>(k::rope(normed, c, s, k::Rope::kHalfSplit), out.rope_half_split);
  const auto rotated = k::rope(normed, c, s, k::Rope::kInterleaved);
  store<Wave>(rotated, out.rope_interleaved);
  store<Wave>(k::hadamard(rotated), out.hadamard);
  k::Geometry g{};
  g.hadamard = true;
  g.scale = scale;
  g.layer_norm_eps = 1e-6f;
  const auto cached = k::index_key(
      k::HeadVector<Wave>::load(raw + key * k::kHeadDim), gamma, beta, c, s, g);
  for (int e = 0; e < k::HeadVector<Wave>::kEach; ++e)
    out.bytes[key * k::kHeadDim +
              static_cast<unsigned>(k::HeadVector<Wave>::first_dim() + e)] =
        cached.byte[e];
  if (hip::lane<Wave>() == 0) out.scale[key] = cached.scale;
}

template <int Wave>
__global__ void quantise_rows(const float* keys, k::Scale scale, k::Fp8 format,
                              uint8_t* bytes, float* scales) {
  const unsigned key = blockIdx.x;
  const auto cached = k::quantise(
      k::HeadVector<Wave>::load(keys + key * k::kHeadDim), scale, format);
  for (int e = 0; e < k::HeadVector<Wave>::kEach; ++e)
    bytes[key * k::kHeadDim +
          static_cast<unsigned>(k::HeadVector<Wave>::first_dim() + e)] =
        cached.byte[e];
  if (hip::lane<Wave>() == 0) scales[key] = cached.scale;
}

template <int Wave>
__global__ void query_rows(const float* mailbox, const float* cosines,
                           const float* sines, k::Geometry g, uint16_t* query) {
  const unsigned start =
      (blockIdx.y * static_cast<unsigned>(g.heads) + blockIdx.x) * k::kHeadDim;
  const auto rotated =
      k::index_query_head(k::HeadVector<Wave>::load(mailbox + start),
                          cosines + blockIdx.y * k::kRopePairs,
                          sines + blockIdx.y * k::kRopePairs, g);
  for (int e = 0; e < k::HeadVector<Wave>::kEach; ++e)
    query[start + static_cast<unsigned>(k::HeadVector<Wave>::first_dim() + e)] =
        k::f32_to_bf16(rotated.value[e]);
}

template <class Kernel, class... Arguments>
void launch(int wave, dim3 grid, Kernel* kernel32, Kernel* kernel64,
            Arguments... arguments) {
  hip::cpu::Options options;
  options.wave_size = wave;
  hip::cpu::set_options(options);
  hipLaunchKernelGGL(wave == 32 ? kernel32 : kernel64, grid,
                     dim3(static_cast<uint32_t>(wave)), 0, nullptr,
                     arguments...);
  ASSERT_EQ(hipGetLastError(), hipSuccess) << hip::cpu::last_report();
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class BothWaves : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, BothWaves, testing::Values(32, 64));

// Vectors of one file of keys, and what the kernels make of them.
struct KeyRun {
  explicit KeyRun(const dumps::Safetensors& file, int wave, k::Scale kind) {
    const auto raw = file.read<float>("raw");
    const auto gamma = file.read<float>("gamma");
    const auto beta = file.read<float>("beta");
    const auto cosines = file.read<float>("cos");
    const auto sines = file.read<float>("sin");
    const size_t keys = raw.size() / k::kHeadDim;
    for (auto* values :
         {&layer_norm, &rope_interleaved, &rope_half_split, &hadamard})
      values->resize(raw.size());
    bytes.resize(raw.size());
    scale.resize(keys);
    launch(wave, dim3(static_cast<uint32_t>(keys)), key_steps<32>,
           key_steps<64>, raw.data(), gamma.data(), beta.data(), cosines.data(),
           sines.data(), kind,
           KeySteps{layer_norm.data(), rope_interleaved.data(),
                    rope_half_split.data(), hadamard.data(), scale.data(),
                    bytes.data()});
  }

  std::vector<float> layer_norm, rope_interleaved, rope_half_split, hadamard,
      scale;  // as KeySteps
  std::vector<uint8_t> bytes;
};

// The line of the rope table is part of the vectors; `positions`, which names
// it, has one entry a line.
void expect_lines(const dumps::Safetensors& file) {
  const auto positions = file.read<int32_t>("positions");
  ASSERT_EQ(file.read<float>("cos").size(), positions.size() * k::kRopePairs);
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] == 0) {
      EXPECT_EQ(file.read<float>("sin")[i * k::kRopePairs], 0.0f);
    }
  }
}

TEST_P(BothWaves, KeyVectors) {
  const auto file = vectors("key");
  expect_lines(file);
  const KeyRun powers(file, GetParam(), k::Scale::kUe8m0);
  EXPECT_EQ(powers.bytes, file.read<uint8_t>("bytes"));
  EXPECT_TRUE(same_bits(powers.scale, file.read<float>("scale")));
  const KeyRun plain(file, GetParam(), k::Scale::kF32);
  EXPECT_EQ(plain.bytes, file.read<uint8_t>("bytes_f32_scale"));
  EXPECT_TRUE(same_bits(plain.scale, file.read<float>("scale_f32")));
}

// `mean`, `var` and `key` are judged through layer_norm, which no other mean or
// variance would give, and through hadamard: the file's `hadamard` is before
// the factor, `key` after it.
TEST_P(BothWaves, StageVectors) {
  const auto file = vectors("stages");
  expect_lines(file);
  const KeyRun run(file, GetParam(), k::Scale::kUe8m0);
  EXPECT_TRUE(same_bits(run.layer_norm, file.read<float>("layernorm")));
  EXPECT_TRUE(
      same_bits(run.rope_interleaved, file.read<float>("rope_interleaved")));
  EXPECT_TRUE(
      same_bits(run.rope_half_split, file.read<float>("rope_half_split")));
  EXPECT_TRUE(same_bits(run.hadamard, file.read<float>("key")));
  auto scaled = file.read<float>("hadamard");
  for (float& v : scaled) v *= __builtin_bit_cast(float, 0x3DB504F3u);
  EXPECT_TRUE(same_bits(run.hadamard, scaled));
  const auto raw = file.read<float>("raw");
  const auto gamma = file.read<float>("gamma");
  const auto beta = file.read<float>("beta");
  const auto mean = file.read<float>("mean");
  const auto var = file.read<float>("var");
  for (size_t i = 0; i < raw.size(); ++i) {
    const float rstd = 1.0f / sqrtf(var[i / 128] + 1e-6f);
    ASSERT_EQ(run.layer_norm[i],
              (raw[i] - mean[i / 128]) * rstd * gamma[i % 128] + beta[i % 128])
        << i;
  }
}

TEST_P(BothWaves, QuantiseVectors) {
  const auto file = vectors("quantise");
  const auto keys = file.read<float>("key");
  const uint32_t count = static_cast<uint32_t>(keys.size() / k::kHeadDim);
  std::vector<uint8_t> bytes(keys.size());
  std::vector<float> scales(count);
  launch(GetParam(), dim3(count), quantise_rows<32>, quantise_rows<64>,
         keys.data(), k::Scale::kUe8m0, k::Fp8::kE4m3fn, bytes.data(),
         scales.data());
  EXPECT_EQ(bytes, file.read<uint8_t>("bytes"));
  EXPECT_TRUE(same_bits(scales, file.read<float>("scale")));
  launch(GetParam(), dim3(count), quantise_rows<32>, quantise_rows<64>,
         keys.data(), k::Scale::kF32, k::Fp8::kE4m3fn, bytes.data(),
         scales.data());
  EXPECT_EQ(bytes, file.read<uint8_t>("bytes_f32_scale"));
  EXPECT_TRUE(same_bits(scales, file.read<float>("scale_f32")));
}

TEST_P(BothWaves, QueryVectors) {
  const auto file = vectors("query");
  expect_lines(file);
  const auto mailbox = file.read<float>("mailbox");
  const auto cosines = file.read<float>("cos");
  const auto sines = file.read<float>("sin");
  std::vector<uint16_t> query(mailbox.size());
  launch(GetParam(),
         dim3(32, static_cast<uint32_t>(mailbox.size() / (32 * 128))),
         query_rows<32>, query_rows<64>, mailbox.data(), cosines.data(),
         sines.data(), geometry(), query.data());
  EXPECT_EQ(query, file.read<uint16_t>("expected"));
}

TEST(Formats, EncodeVectors) {
  const auto file = vectors("encode");
  const auto x = file.read<float>("x");
  const auto codes = file.read<uint8_t>("e4m3fn");
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(k::f32_to_e4m3(x[i], k::Fp8::kE4m3fn), codes[i]) << x[i];
  const auto in = file.read<float>("bf16_in");
  const auto bf16 = file.read<uint16_t>("bf16");
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_EQ(k::f32_to_bf16(in[i]), bf16[i]) << in[i];
}

// Every e4m3 value encodes to its own byte; halfway between two neighbours, to
// the even one; just off it, to the nearer.
TEST(Formats, EveryCodeAndEveryMidpoint) {
  const auto decoded = vectors("e4m3").read<float>("value");
  for (const k::Fp8 format : {k::Fp8::kE4m3fn, k::Fp8::kE4m3fnuz}) {
    const bool fn = format == k::Fp8::kE4m3fn;
    const int largest = fn ? 0x7E : 0x7F;
    // A fnuz code is worth half of the same fn code, and 0x7F, a NaN in fn,
    // goes on where 0x7E ends.
    const auto value = [&](int code) {
      return fn             ? decoded[static_cast<size_t>(code)]
             : code == 0x7F ? 240.0f
                            : decoded[static_cast<size_t>(code)] / 2;
    };
    for (int code = 0; code <= largest; ++code) {
      ASSERT_EQ(k::f32_to_e4m3(value(code), format), code);
      ASSERT_EQ(k::f32_to_e4m3(-value(code), format),
                code == 0 && !fn ? 0 : code | 0x80);
      if (code == largest) break;
      const float middle = (value(code) + value(code + 1)) / 2;
      ASSERT_EQ(k::f32_to_e4m3(middle, format), code % 2 == 0 ? code : code + 1)
          << code;
      ASSERT_EQ(k::f32_to_e4m3(std::nextafter(middle, 0.0f), format), code)
          << code;
      ASSERT_EQ(k::f32_to_e4m3(std::nextafter(middle, 1000.0f), format),
                code + 1)
          << code;
    }
    EXPECT_EQ(k::f32_to_e4m3(1e30f, format), largest);
    EXPECT_EQ(k::f32_to_e4m3(-1e30f, format), largest | 0x80);
    EXPECT_EQ(k::f32_to_e4m3(__builtin_nanf(""), format), fn ? 0x7F : 0x80);
    EXPECT_EQ(k::f32_to_e4m3(-1e-20f, format), fn ? 0x80 : 0x00);
  }
}

TEST(Pages, Preshuffled) {
  // Token 17 of page 2, dim 37: the second group of 16 tokens, the third of 16
  // dims, its second token, the sixth dim.
  EXPECT_EQ(k::key_byte(2 * 64 + 17, 37, k::PageLayout::kPreshuffled16),
            2 * 8448 + 2048 + 2 * 256 + 16 + 5);
  EXPECT_EQ(k::key_byte(2 * 64 + 17, 37, k::PageLayout::kPlain),
            2 * 8448 + 17 * 128 + 37);
  EXPECT_EQ(k::scale_byte(2 * 64 + 17), 2 * 8448 + 8192 + 17 * 4);
  // Past 2^31 bytes.
  EXPECT_EQ(k::key_byte(300000 * 64, 0, k::PageLayout::kPlain),
            int64_t{300000} * 8448);
}

}  // namespace
}  // namespace exact_topk::tests
