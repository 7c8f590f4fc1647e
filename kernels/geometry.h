// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model's indexer looks like to the kernels, and the numbers that every
// indexer shares. candidate.cpp translates xtk_geometry into this once, when it
// opens; kernels take it by value.

#include <cstdint>

namespace exact_topk::kernels {

inline constexpr int kHeadDim =
    128;  // dims of an index query head and of an index key
inline constexpr int kRopeDims = 64;  // the first dims of it, which are rotated
inline constexpr int kRopePairs =
    32;  // pairs of them: entries of a row of the rope table
inline constexpr int kPageKeys = 64;  // keys of a page
inline constexpr int kPageBytes =
    8448;  // 64 * 128 key bytes, then 64 f32 scales
inline constexpr int kScalesOffset = 8192;  // first byte of a page's scales
inline constexpr int kLargestK = 2048;     // entries selected of a row, at most
inline constexpr int kLargestRows = 8;     // rows of a launch, at most
inline constexpr int kLargestHeads = 128;  // index heads, at most
inline constexpr int64_t kLargestKeys =
    (int64_t{1} << 20) + 64;  // keys of a row, at most

enum class Rope : int32_t {
  kInterleaved,
  kHalfSplit
};  // pair i: dims (2i, 2i+1), or (i, i+32)
enum class Scale : int32_t {
  kUe8m0,
  kF32
};  // a key's scale: a power of two, or any f32
enum class Fp8 : int32_t { kE4m3fn, kE4m3fnuz };  // of key bytes
enum class PageLayout : int32_t {
  kPlain,
  kPreshuffled16
};  // of the key bytes within a page

struct Geometry {
  int hidden;     // model width
  int q_lora;     // rank of the query down-projection
  int heads;      // index heads H
  int k;          // entries selected of a row
  Rope rope;      // which dims form a pair
  bool hadamard;  // whether queries and keys go through the Hadamard transform
  Scale scale;    // format of a key's scale
  Fp8 fp8;        // format of key bytes
  PageLayout page_layout;  // of the cache
  float layer_norm_eps;    // of the index key's LayerNorm
  float rms_eps;           // of the RMSNorms
  float weight_factor;  // H^-1/2 * 128^-1/2, computed in f64 and rounded once
};

}  // namespace exact_topk::kernels
