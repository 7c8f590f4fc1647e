// SPDX-License-Identifier: Apache-2.0
#include "cases/inputs.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "cases/caches.h"
#include "cases/generator.h"
#include "cases/order.h"
#include "cases/words.h"
#include "oracle/formats.h"
#include "oracle/front.h"
#include "oracle/pages.h"

namespace exact_topk::cases {
namespace {

using oracle::kHeadDim;
using oracle::kPageBytes;
using oracle::kPageTokens;

constexpr uint32_t kUnownedScale = 0x7FC00000u;  // NaN
constexpr uint8_t kUnownedByte = 0x7F;
constexpr int kRopePairs = oracle::kRopeDims / 2;

// A range of elements of one tensor, to be written.
struct Range {
  const Case& c;
  const Plan& plan;
  uint64_t seed;
  int launch, step;
  int64_t begin;               // first element
  std::span<std::byte> bytes;  // of the elements from there on

  template <typename Value>
  std::span<Value> as() const {
    return {reinterpret_cast<Value*>(bytes.data()),
            bytes.size() / sizeof(Value)};
  }
};

// Weights depend on the seed, the sizes, the kind, the layer and the tensor.
Stream weight_stream(const Range& range, Input input) {
  const oracle::Geometry& g = range.c.geometry;
  return {range.seed,
          fmt::format("weights/hidden={}/q_lora={}/heads={}/kind={}/layer{}/{}",
                      g.hidden, g.q_lora, g.heads,
                      word_of(kKindWords, kind_of(range.c, range.launch)),
                      range.launch, info(input, range.c, range.plan).name)};
}

// In the model's order all launches of a step read the same.
Stream step_stream(const Range& range, std::string_view what) {
  return {range.seed, fmt::format("{}/launch{}/step{}/{}", input_name(range.c),
                                  model_order(range.c) ? 0 : range.launch,
                                  range.step, what)};
}

// bf16 of factor * normal
void fill_bf16(const Stream& stream, float factor, int64_t begin,
               std::span<uint16_t> out) {
  std::array<uint16_t, kByteSums> table;
  for (int sum = 0; sum < kByteSums; ++sum)
    table[static_cast<size_t>(sum)] =
        oracle::f32_to_bf16(factor * byte_normal(sum));
  generate<4>(stream, begin, out, [&](const Words4& words, int lane) {
    return table[static_cast<size_t>(
        byte_sum(words[static_cast<size_t>(lane)]))];
  });
}

// offset + factor * normal
void fill_f32(const Stream& stream, float offset, float factor, int64_t begin,
              std::span<float> out) {
  generate<2>(stream, begin, out, [&](const Words4& words, int lane) {
    return offset + factor * fine_normal(words, lane);
  });
}

// One hidden element in 32 carries a large number in the residual that the
// first partial sum takes back, so that a sum in another order than ((residual
// + p0) + p1) + ... shows in x. `end` is past the last element that gets
// `carried`.
void carry(const Range& range, float carried, int64_t end) {
  constexpr int64_t kEvery = 32, kFirst = 7;
  const std::span<float> values = range.as<float>();
  const int64_t last =
      std::min<int64_t>(end - range.begin, static_cast<int64_t>(values.size()));
  for (int64_t i = (kFirst - range.begin % kEvery + kEvery) % kEvery; i < last;
       i += kEvery)
    values[static_cast<size_t>(i)] += carried;
}
constexpr float kCarried = 0x1p20f;

// One dim in 16 of a key is so small that without Hadamard its codes are
// subnormal, and some of them zeros of both signs.
void shrink(const Range& range) {
  constexpr int64_t kEvery = 16, kFirst = 9;
  const std::span<float> values = range.as<float>();
  for (size_t i = static_cast<size_t>((kFirst - range.begin % kEvery + kEvery) %
                                      kEvery);
       i < values.size(); i += kEvery)
    values[i] *= 0x1p-14f;
}

void fill_matrix(const Range& range, Input input, int fan_in) {
  const float factor = 1.0f / std::sqrt(static_cast<float>(fan_in));
  if (info(input, range.c, range.plan).dtype == DType::kBf16)
    fill_bf16(weight_stream(range, input), factor, range.begin,
              range.as<uint16_t>());
  else
    fill_f32(weight_stream(range, input), 0.0f, factor, range.begin,
             range.as<float>());
}

// SPEC section 3: inv_i = pow(theta, -2i/64), angle = p * inv_i, cos and sin in
// f64.
void fill_rope(const Range& range, double (*function)(double)) {
  std::array<double, kRopePairs> inverse;
  for (int i = 0; i < kRopePairs; ++i)
    inverse[static_cast<size_t>(i)] =
        std::pow(range.c.geometry.theta, -2.0 * i / oracle::kRopeDims);
  int64_t e = range.begin;
  for (float& value : range.as<float>()) {
    const double angle = static_cast<double>(e / kRopePairs) *
                         inverse[static_cast<size_t>(e % kRopePairs)];
    value = static_cast<float>(function(angle));
    ++e;
  }
}

// One page of a layer's cache.
void make_page(const KeyMaker& make, const Cache& source,
               const PageState& state, int64_t page, oracle::PageLayout layout,
               std::span<uint8_t, kPageBytes> out) {
  std::memset(out.data(), kUnownedByte, out.size());
  for (int token = 0; token < kPageTokens; ++token) {
    float scale = std::bit_cast<float>(kUnownedScale);
    if ((state.cached >> token & 1) != 0) {
      const oracle::CachedKey key = source.key(
          make, page * kPageTokens + token, (state.recent >> token & 1) != 0);
      // Both layouts keep runs of 16 dims together.
      for (int dim = 0; dim < kHeadDim; dim += 16)
        std::memcpy(&out[oracle::key_byte(token, dim, layout)],
                    &key.bytes[static_cast<size_t>(dim)], 16);
      scale = key.scale;
    }
    std::memcpy(&out[oracle::scale_byte(token)], &scale, sizeof scale);
  }
}

void fill_cache(const Range& range) {
  const KeyMaker make(range.c, range.seed, range.launch);
  const Cache& source = cache(range.c.cache);
  const int64_t end = range.begin + static_cast<int64_t>(range.bytes.size());
  std::array<uint8_t, kPageBytes> page;
  for (int64_t p = range.begin / kPageBytes; p * kPageBytes < end; ++p) {
    make_page(make, source, range.plan.page_states[static_cast<size_t>(p)], p,
              range.c.geometry.page_layout, page);
    const int64_t from = std::max(range.begin, p * kPageBytes),
                  to = std::min(end, (p + 1) * kPageBytes);
    std::memcpy(&range.bytes[static_cast<size_t>(from - range.begin)],
                &page[static_cast<size_t>(from - p * kPageBytes)],
                static_cast<size_t>(to - from));
  }
}

// The rows' integers of one kind, as an i32 tensor.
void fill_rows(const Range& range, int64_t (*of)(const Row&)) {
  const std::vector<Row>& rows =
      range.plan.steps[static_cast<size_t>(range.step)].rows;
  auto row = rows.begin() + range.begin;
  for (int32_t& value : range.as<int32_t>())
    value = static_cast<int32_t>(of(*row++));
}

void copy_integers(const Range& range, const std::vector<int32_t>& from) {
  std::memcpy(range.bytes.data(), from.data() + range.begin,
              range.bytes.size());
}

// Pad rows name a token too, as they do in a padded batch.
void fill_tokens(const Range& range) {
  const Stream stream = step_stream(range, "tokens");
  int64_t e = range.begin;
  for (int32_t& value : range.as<int32_t>())
    value = static_cast<int32_t>(stream.below(
        static_cast<uint64_t>(e++), static_cast<uint32_t>(kVocabulary)));
}

// What info() knows and what fill() does with a tensor, in the order of Input.
struct Tensor {
  const char* name;
  DType dtype;
  Lifetime lifetime;
  std::function<std::vector<int64_t>(const Case&, const Plan&)> shape;
  std::function<void(const Range&)> fill;
};

const Tensor& tensor(Input input) {
  using C = const Case&;
  using P = const Plan&;
  using R = const Range&;
  using enum DType;
  using enum Lifetime;
  using Shape = std::vector<int64_t>;
  const auto one_a_row = [](C c, P) { return Shape{c.rows}; };
  const auto rope_shape = [](C, P plan) {
    return Shape{plan.rope_positions, kRopePairs};
  };
  const auto gamma = [](Input which) {
    return [which](R r) {
      fill_f32(weight_stream(r, which), 1.0f, 0.1f, r.begin, r.as<float>());
    };
  };
  static const std::array<Tensor, kInputs> kTensors = {{
      {"embedding", kBf16, kLayer,
       [](C c, P) {
         return Shape{kVocabulary, c.geometry.hidden};
       },
       [](R r) {
         fill_bf16(weight_stream(r, Input::kEmbedding), 1.0f, r.begin,
                   r.as<uint16_t>());
       }},
      {"input_gamma", kF32, kLayer,
       [](C c, P) { return Shape{c.geometry.hidden}; },
       gamma(Input::kInputGamma)},
      {"q_a", kBf16, kLayer,
       [](C c, P) {
         return Shape{c.geometry.q_lora, c.geometry.hidden};
       },
       [](R r) { fill_matrix(r, Input::kQA, r.c.geometry.hidden); }},
      {"q_gamma", kF32, kLayer, [](C c, P) { return Shape{c.geometry.q_lora}; },
       gamma(Input::kQGamma)},
      {"wq_b", kBf16, kLayer,
       [](C c, P) {
         return Shape{int64_t{c.geometry.heads} * kHeadDim, c.geometry.q_lora};
       },
       [](R r) { fill_matrix(r, Input::kWqB, r.c.geometry.q_lora); }},
      {"wk", kBf16, kLayer,
       [](C c, P) {
         return Shape{kHeadDim, c.geometry.hidden};
       },
       [](R r) { fill_matrix(r, Input::kWk, r.c.geometry.hidden); }},
      {"k_gamma", kF32, kLayer, [](C, P) { return Shape{kHeadDim}; },
       [gamma](R r) {
         gamma(Input::kKGamma)(r);
         shrink(r);
       }},
      {"k_beta", kF32, kLayer, [](C, P) { return Shape{kHeadDim}; },
       [](R r) {
         fill_f32(weight_stream(r, Input::kKBeta), 0.0f, 0.1f, r.begin,
                  r.as<float>());
         shrink(r);
       }},
      {"weights_proj", kF32, kLayer,
       [](C c, P) {
         return Shape{c.geometry.heads, c.geometry.hidden};
       },
       [](R r) { fill_matrix(r, Input::kWeightsProj, r.c.geometry.hidden); }},
      {"rope_cos", kF32, kCase, rope_shape,
       [](R r) { fill_rope(r, [](double angle) { return std::cos(angle); }); }},
      {"rope_sin", kF32, kCase, rope_shape,
       [](R r) { fill_rope(r, [](double angle) { return std::sin(angle); }); }},
      {"cache", kU8, kLayer,
       [](C, P plan) {
         return Shape{plan.pages, kPageBytes};
       },
       fill_cache},
      {"residual", kF32, kStep,
       [](C c, P) {
         return Shape{c.rows, c.geometry.hidden};
       },
       [](R r) {
         fill_f32(step_stream(r, "residual"), 0.0f, 1.0f, r.begin,
                  r.as<float>());
         carry(r, -kCarried, INT64_MAX);
       }},
      {"partials", kF32, kStep,
       [](C c, P) {
         return Shape{has_kind(c, Kind::kIndex) ? c.tp : 1, c.rows,
                      c.geometry.hidden};
       },
       [](R r) {
         fill_f32(step_stream(r, "partials"), 0.0f, 0.25f, r.begin,
                  r.as<float>());
         carry(r, kCarried, int64_t{r.c.rows} * r.c.geometry.hidden);
       }},
      {"tokens", kI32, kStep, one_a_row, fill_tokens},
      {"requests", kI32, kStep, one_a_row,
       [](R r) {
         fill_rows(r, [](const Row& row) { return int64_t{row.request}; });
       }},
      {"positions", kI32, kStep, one_a_row,
       [](R r) { fill_rows(r, [](const Row& row) { return row.position; }); }},
      {"slots", kI32, kStep, one_a_row,
       [](R r) { fill_rows(r, [](const Row& row) { return row.slot; }); }},
      {"page_table", kI32, kStep,
       [](C c, P plan) {
         return Shape{c.rows, plan.table_width};
       },
       [](R r) {
         copy_integers(r, r.plan.steps[static_cast<size_t>(r.step)].page_table);
       }},
      {"indptr", kI32, kStep, one_a_row,
       [](R r) {
         copy_integers(r, r.plan.steps[static_cast<size_t>(r.step)].indptr);
       }},
  }};
  return kTensors[static_cast<size_t>(input)];
}

}  // namespace

int element_bytes(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return 1;
    case DType::kBf16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
  }
  return 0;
}

int64_t InputInfo::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

InputInfo info(Input input, const Case& c, const Plan& plan) {
  const Tensor& t = tensor(input);
  InputInfo result{t.name, t.dtype, t.shape(c, plan), 0, t.lifetime};
  result.bytes = static_cast<uint64_t>(result.elements()) *
                 static_cast<uint64_t>(element_bytes(t.dtype));
  return result;
}

bool used(Input input, const Case& c) {
  switch (c.stage) {
    case Stage::kSelect:
      return false;
    case Stage::kScore:
      return input == Input::kCache || input == Input::kRequests ||
             input == Input::kPositions || input == Input::kPageTable;
    case Stage::kLaunch:
      break;
  }
  if (input == Input::kEmbedding || input == Input::kTokens)
    return has_kind(c, Kind::kEmbed);
  if (input == Input::kResidual || input == Input::kPartials)
    return has_kind(c, Kind::kIndex) || has_kind(c, Kind::kDense);
  return true;
}

void fill(Input input, const Case& c, const Plan& plan, uint64_t seed,
          int launch, int step, int64_t begin, int64_t end,
          std::span<std::byte> out) {
  const InputInfo about = info(input, c, plan);
  if (begin < 0 || end < begin || end > about.elements() ||
      out.size() != static_cast<size_t>(end - begin) *
                        static_cast<size_t>(element_bytes(about.dtype)))
    throw std::invalid_argument(fmt::format(
        "elements {} to {} of {}, which has {}, do not fit {} bytes", begin,
        end, about.name, about.elements(), out.size()));
  if (begin < end)
    tensor(input).fill({c, plan, seed, launch, step, begin, out});
}

Poison poison(const Case& c, const Plan& plan, uint64_t seed, int launch,
              int step, int attempt) {
  const Stream stream(seed, fmt::format("{}/launch{}/step{}/poison{}",
                                        input_name(c), launch, step, attempt));
  Poison result;
  result.keys.resize(plan.steps[static_cast<size_t>(step)].rows.size());
  result.scales.assign(result.keys.size(), 1e30f);
  int64_t row = 0;
  for (auto& key : result.keys) {
    generate<4>(stream, kHeadDim * row++, std::span<uint8_t>(key),
                [&](const Words4& words, int lane) {
                  const auto code = static_cast<uint8_t>(
                      words[static_cast<size_t>(lane)] >> 24);
                  return std::isnan(oracle::e4m3_to_f32(code, c.geometry.fp8))
                             ? static_cast<uint8_t>(code ^ 1u)
                             : code;
                });
  }
  return result;
}

void output_pattern(uint64_t seed, int launch, int step, int attempt,
                    int tensor_number, uint64_t begin_byte,
                    std::span<std::byte> out) {
  const Stream stream(
      seed, fmt::format("output/launch{}/step{}/attempt{}/tensor{}", launch,
                        step, attempt, tensor_number));
  generate<16>(stream, static_cast<int64_t>(begin_byte), out,
               [](const Words4& words, int lane) {
                 return static_cast<std::byte>(
                     words[static_cast<size_t>(lane / 4)] >> (lane % 4 * 8));
               });
}

ScoreInputs score_inputs(const Case& c, uint64_t seed) {
  const auto weights =
      static_cast<size_t>(c.rows) * static_cast<size_t>(c.geometry.heads);
  ScoreInputs result{std::vector<uint16_t>(weights * kHeadDim),
                     std::vector<float>(weights)};
  const Stream query(seed, input_name(c) + "/query"),
      weight(seed, input_name(c) + "/weights");
  if (!c.integers()) {
    fill_bf16(query, 1.0f, 0, result.query);
    fill_f32(weight, 0.0f,
             static_cast<float>(oracle::head_weight_factor(c.geometry)), 0,
             result.weights);
    return result;
  }
  // 1.15 * 3.45 rounds to 4.
  const auto integer = [](const Words4& words, int lane) {
    return std::nearbyintf(
        1.15f * byte_normal(byte_sum(words[static_cast<size_t>(lane)])));
  };
  generate<4>(query, 0, std::span(result.query),
              [&](const Words4& words, int lane) {
                return oracle::f32_to_bf16(integer(words, lane) + 0.0f);
              });
  generate<4>(weight, 0, std::span(result.weights),
              [&](const Words4& words, int lane) {
                return integer(words, lane) + 0.0f;
              });
  return result;
}

}  // namespace exact_topk::cases
