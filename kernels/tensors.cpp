// SPDX-License-Identifier: Apache-2.0
#include "kernels/tensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/geometry.h"

namespace exact_topk::kernels {
namespace {

// One tensor of the ABI.
struct TensorKind {
  const char* name;  // in sentences
  bool per_layer;    // whether each layer has its own
  uint64_t (*elements)(const xtk_open_options&);  // of one buffer
  uint64_t element_bytes;                         // of one element
  int64_t (*limit)(
      const xtk_open_options&);  // of an index: values are -1 or below it;
                                 // nullptr for other tensors
};

constexpr uint64_t product(std::initializer_list<int64_t> factors) {
  uint64_t result = 1;
  for (const int64_t factor : factors) result *= static_cast<uint64_t>(factor);
  return result;
}

using Open = xtk_open_options;
constexpr TensorKind kTensors[] = {
    {"embedding", true,
     [](const Open& o) {
       return product({o.vocabulary, o.geometry.hidden});
     },
     2, nullptr},
    {"input_gamma", true,
     [](const Open& o) { return product({o.geometry.hidden}); }, 4, nullptr},
    {"q_a", true,
     [](const Open& o) {
       return product({o.geometry.q_lora, o.geometry.hidden});
     },
     2, nullptr},
    {"q_gamma", true,
     [](const Open& o) { return product({o.geometry.q_lora}); }, 4, nullptr},
    {"wq_b", true,
     [](const Open& o) {
       return product({o.geometry.heads, kHeadDim, o.geometry.q_lora});
     },
     2, nullptr},
    {"wk", true,
     [](const Open& o) {
       return product({kHeadDim, o.geometry.hidden});
     },
     2, nullptr},
    {"k_gamma", true, [](const Open&) { return product({kHeadDim}); }, 4,
     nullptr},
    {"k_beta", true, [](const Open&) { return product({kHeadDim}); }, 4,
     nullptr},
    {"weights_proj", true,
     [](const Open& o) {
       return product({o.geometry.heads, o.geometry.hidden});
     },
     4, nullptr},
    {"rope_cos", false,
     [](const Open& o) {
       return product({o.rope_positions, kRopePairs});
     },
     4, nullptr},
    {"rope_sin", false,
     [](const Open& o) {
       return product({o.rope_positions, kRopePairs});
     },
     4, nullptr},
    {"cache", true,
     [](const Open& o) {
       return product({o.pages, kPageBytes});
     },
     1, nullptr},
    {"residual", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.hidden});
     },
     4, nullptr},
    {"partials", false,
     [](const Open& o) {
       return product({o.max_partials, o.max_rows, o.geometry.hidden});
     },
     4, nullptr},
    {"tokens", false, [](const Open& o) { return product({o.max_rows}); }, 4,
     [](const Open& o) { return int64_t{o.vocabulary}; }},
    {"requests", false, [](const Open& o) { return product({o.max_rows}); }, 4,
     nullptr},
    {"positions", false, [](const Open& o) { return product({o.max_rows}); }, 4,
     [](const Open& o) {
       return std::min(
           {o.max_keys, o.rope_positions, int64_t{o.table_width} * kPageKeys});
     }},
    {"slots", false, [](const Open& o) { return product({o.max_rows}); }, 4,
     [](const Open& o) { return int64_t{o.pages} * kPageKeys; }},
    {"page_table", false,
     [](const Open& o) {
       return product({o.max_rows, o.table_width});
     },
     4, [](const Open& o) { return int64_t{o.pages}; }},
    {"indptr", false, [](const Open& o) { return product({o.max_rows}); }, 4,
     [](const Open& o) { return o.list_entries + 1; }},
    {"x", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.hidden});
     },
     2, nullptr},
    {"q_lora", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.q_lora});
     },
     2, nullptr},
    {"mailbox", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.heads, kHeadDim});
     },
     4, nullptr},
    {"raw_key", false,
     [](const Open& o) {
       return product({o.max_rows, kHeadDim});
     },
     4, nullptr},
    {"w", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.heads});
     },
     4, nullptr},
    {"index_query", false,
     [](const Open& o) {
       return product({o.max_rows, o.geometry.heads, kHeadDim});
     },
     2, nullptr},
    {"scores", false,
     [](const Open& o) {
       return product({o.max_rows, o.score_stride});
     },
     4, nullptr},
    {"list", false, [](const Open& o) { return product({o.list_entries}); }, 4,
     nullptr},
};
static_assert(std::size(kTensors) == XTK_TENSOR_COUNT);

bool exists(xtk_tensor tensor) {
  return tensor >= 0 && tensor < XTK_TENSOR_COUNT;
}

}  // namespace

Tensors::Tensors(const xtk_open_options& options) : layers_(options.layers) {
  for (const TensorKind& kind : kTensors) {
    const uint64_t bytes = kind.elements(options) * kind.element_bytes;
    std::vector<DeviceBuffer>& layers = buffers_.emplace_back();
    for (int layer = 0; layer < (kind.per_layer ? options.layers : 1); ++layer)
      layers.emplace_back(bytes, kind.per_layer ? fmt::format("{} of layer {}",
                                                              kind.name, layer)
                                                : kind.name);
    limits_.push_back(kind.limit == nullptr ? 0 : kind.limit(options));
  }
  // All rows are pad rows until the caller says otherwise.
  for (const xtk_tensor tensor : {XTK_REQUESTS, XTK_POSITIONS, XTK_SLOTS})
    buffers_[tensor][0].fill(0xFF);
  for (const xtk_tensor tensor : {XTK_TOKENS, XTK_PAGE_TABLE, XTK_INDPTR})
    buffers_[tensor][0].fill(0);
}

uint64_t Tensors::bytes(xtk_tensor tensor) const {
  return exists(tensor) && !buffers_[tensor].empty()
             ? buffers_[tensor][0].bytes()
             : 0;
}

const DeviceBuffer& Tensors::buffer(xtk_tensor tensor, int layer) const {
  return buffers_[tensor]
                 [kTensors[tensor].per_layer ? static_cast<size_t>(layer) : 0];
}

void Tensors::require_layer(xtk_tensor tensor, int layer) const {
  require(exists(tensor), "there is no tensor {}; they are 0 to {}",
          static_cast<int>(tensor), XTK_TENSOR_COUNT - 1);
  if (kTensors[tensor].per_layer) {
    require(layer >= 0 && layer < layers_, "{} has no layer {}; {} are held",
            kTensors[tensor].name, layer, layers_);
  } else {
    require(layer == 0, "{} exists once; layer 0 is passed for it, not {}",
            kTensors[tensor].name, layer);
  }
}

void Tensors::require_range(xtk_tensor tensor, int layer, uint64_t offset,
                            uint64_t bytes, const void* memory) const {
  require_layer(tensor, layer);
  const uint64_t held = buffer(tensor, layer).bytes();
  require(offset <= held && bytes <= held - offset,
          "{} holds {} bytes; {} at {} do not lie inside",
          kTensors[tensor].name, held, bytes, offset);
  require(memory != nullptr || bytes == 0,
          "the memory for {} is a null pointer", kTensors[tensor].name);
}

void Tensors::write(xtk_tensor tensor, int layer, uint64_t offset,
                    uint64_t bytes, const void* source) {
  require_range(tensor, layer, offset, bytes, source);
  if (kTensors[tensor].limit != nullptr) {
    const char* name = kTensors[tensor].name;
    require(offset % 4 == 0 && bytes % 4 == 0,
            "{} is written in whole elements of 4 bytes, not {} bytes at {}",
            name, bytes, offset);
    for (uint64_t i = 0; i < bytes; i += 4) {
      int32_t value;
      std::memcpy(&value, static_cast<const char*>(source) + i, 4);
      require(value >= -1 && value < limits_[tensor],
              "element {} of {} is {}; it is -1, or from 0 to {}",
              (offset + i) / 4, name, value, limits_[tensor] - 1);
    }
  }
  buffers_[tensor][static_cast<size_t>(layer)].write(offset, bytes, source);
}

void Tensors::read(xtk_tensor tensor, int layer, uint64_t offset,
                   uint64_t bytes, void* destination) const {
  require_range(tensor, layer, offset, bytes, destination);
  buffer(tensor, layer).read(offset, bytes, destination);
}

}  // namespace exact_topk::kernels
