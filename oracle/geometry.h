// SPDX-License-Identifier: Apache-2.0
//
// The geometry of an indexer (SPEC section 2) as data: one struct, and the
// presets that ship. Everything that a switch may change is a field; what no
// model changes (head and page sizes) is a constant.
#pragma once

#include <string>

namespace exact_topk::oracle {

enum class Rope { kInterleaved, kHalfSplit };
enum class Scale { kUe8m0, kF32 };
enum class Fp8 { kE4m3fn, kE4m3fnuz };
enum class PageLayout { kPlain, kPreshuffled16 };

inline constexpr int kHeadDim = 128;     // elements of a key and of a query
inline constexpr int kRopeDims = 64;     // the first dims, which rope turns
inline constexpr int kPageTokens = 64;   // keys of a page
inline constexpr int kPageBytes = 8448;  // 64 * 128 key bytes, 64 f32 scales

struct Geometry {
  std::string name;                // of the preset or file, for case names
  int hidden = 0;                  // elements of a hidden state
  int q_lora = 0;                  // elements of the compressed query
  int heads = 0;                   // index heads, H
  int k = 2048;                    // keys that are selected
  double theta = 0.0;              // rope's base
  Rope rope = Rope::kInterleaved;  // which dims rope pairs
  bool hadamard = true;            // the Hadamard transform of query and key
  Scale scale = Scale::kUe8m0;     // how the scale of a key is rounded
  Fp8 fp8 = Fp8::kE4m3fn;          // format of cached key bytes
  PageLayout page_layout = PageLayout::kPlain;  // where key bytes lie in a page
  float layer_norm_eps = 1e-6f;                 // of the key's LayerNorm
  float rms_eps = 1e-5f;                        // of both RMSNorms

  bool operator==(const Geometry&) const = default;
};

Geometry glm53();  // GLM-5.2 and 5.3; the default
Geometry glm51();  // GLM-5 and 5.1: another theta
Geometry dsv32();  // DeepSeek-V3.2, without YaRN

}  // namespace exact_topk::oracle
