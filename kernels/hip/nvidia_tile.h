// SPDX-License-Identifier: Apache-2.0
#pragma once

// The matrix tiles of mma.h on Hopper.
//
// Scores: the four waves of a warpgroup multiply 64
// keys by the queries of up to two rows at a time with wgmma. Keys are the A
// operand: each lane decodes its own from the bytes into registers, so that
// they pass through LDS once at most. Queries are the B operand and stay in LDS
// for as long as a block scores their rows.
//
// The order of a dot product is the instruction's own, over dims as permuted
// here; then each lane adds 8 of 32 heads by fused multiply-add, and the four
// lanes of a key add up, neighbours first. Dims are permuted so that the 32
// that a lane holds of a key are neighbours in memory, and so that two codes of
// one word become a pair of bf16 without moving apart: position 16 s + 2 t + e
// of the product is dim 32 t + 4 s + 2 e, position 16 s + 8 + 2 t + e is dim
// 32 t + 4 s + 2 e + 1 (s 0..7, t 0..3, e 0..1).
//
// Keys stand as their codes' bits in the places of a bf16's, which is 2^-120
// (e4m3fn) or 2^-119 (fnuz) times the key. Queries are multiplied by 2^60 when
// they are put into LDS, and the sum over heads by what is left: all exact, and
// products stay far from both ends of f32 for queries from 2^-60 to 2^60. NaN
// codes stand for numbers: no key that counts has one.
//
// Front: bf16 weights are the A operand of mma, read from memory once, inputs
// the B operand. In both a lane takes 8 neighbouring elements of a row at a
// time; the order of a sum is the instruction's own. f32 weights are few: a
// lane sums 4 neighbouring elements in every 128 by fused multiply-add, and
// lanes add up by halves.

#include <cstddef>
#include <cstdint>

#include "kernels/hip/tile_operands.h"
#include "kernels/hip/wave.h"

namespace exact_topk::hip {

/// Queries and weights of the rows that a block scores, in LDS: bf16 queries as
/// the matrix instruction reads them (rows of 128 bytes, swizzled), heads
/// padded with zeros to whole tiles of 32, then f32 weights.
class QueryBlock {
 public:
  static constexpr int kHeadTile = 32;     ///< heads of a product
  static constexpr int kAlignment = 1024;  ///< of the LDS

  static __host__ __device__ constexpr int padded(int heads) {
    return (heads + kHeadTile - 1) / kHeadTile * kHeadTile;
  }
  static __host__ __device__ constexpr size_t bytes(int rows, int heads) {
    return static_cast<size_t>(rows) * static_cast<size_t>(padded(heads)) *
           (256 + sizeof(float));
  }

  __device__ QueryBlock(std::byte* lds, int rows, int heads)
      : lds_(lds), rows_(rows), heads_(padded(heads)) {
    if (heads == heads_) return;
    for (size_t i = threadIdx.x * 4; i < bytes(rows, heads);
         i += blockDim.x * 4)
      *reinterpret_cast<uint32_t*>(lds_ + i) = 0;
    __syncthreads();
  }
  /// Word `word` of row `row`'s bf16 [H][128]: two neighbouring dims.
  __device__ void put(int row, int word, uint32_t dims) {
    const int dim = word % 64 * 2;
    const int position = dim % 32 / 4 * 16 + dim / 32 * 2 + dim % 4 / 2;
    const int n = row * kHeadTile + word / 64 % kHeadTile;
    std::byte* const at = tile(word / 64 / kHeadTile) +
                          position / 64 * half_bytes() + n / 8 * 1024 +
                          n % 8 * 128 + position % 8 * 2;
    const int chunk = position % 64 / 8;
    uint32_t scaled;
    asm("mul.rn.bf16x2 %0, %1, %2;"
        : "=r"(scaled)
        : "r"(dims), "r"(0x5D805D80u));  // 2^60 twice
    *reinterpret_cast<uint16_t*>(at + (chunk ^ n % 8) * 16) =
        static_cast<uint16_t>(scaled);
    *reinterpret_cast<uint16_t*>(at + (chunk + 1 ^ n % 8) * 16) =
        static_cast<uint16_t>(scaled >> 16);
  }
  __device__ void put_weight(int row, int head, float weight) {
    reinterpret_cast<float*>(weights())[row * heads_ + head] = weight;
  }
  /// Makes this thread's stores visible to the matrix unit, after a barrier.
  __device__ void complete() const {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  __device__ int head_tiles() const { return heads_ / kHeadTile; }
  /// 32 heads of all rows, from row `row` on: the first 64 of the 128 positions
  /// of each; the others half_bytes() further.
  __device__ const std::byte* queries(int head_tile, int row) const {
    return tile(head_tile) + row * kHeadTile * 128;
  }
  __device__ int half_bytes() const { return rows_ * kHeadTile * 128; }
  __device__ const float* row_weights(int row) const {
    return reinterpret_cast<const float*>(weights()) + row * heads_;
  }

 private:
  __device__ std::byte* tile(int head_tile) const {
    return lds_ + head_tile * 2 * half_bytes();
  }
  __device__ std::byte* weights() const {
    return lds_ + head_tiles() * 2 * half_bytes();
  }

  std::byte* lds_;  // of the block
  int rows_;        // of the block
  int heads_;       // of a row, padded
};

namespace nvidia {

// This lane's part of 16 keys for the matrix unit, by steps of 16 positions.
struct KeyFragment {
  uint32_t step[8][4];

  __device__ KeyFragment(const KeyTile& keys, int lane) {
    const int dim = lane % 4 * 32;
    const bool plain = keys.layout == KeyLayout::plain;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = keys.first + lane / 4 + 8 * half;
      const uint8_t* at =
          keys.page +
          (plain ? token * 128 + dim
                 : token / 16 * 2048 + dim / 16 * 256 + token % 16 * 16);
      const uint4 low = *reinterpret_cast<const uint4*>(at);
      const uint4 high =
          *reinterpret_cast<const uint4*>(at + (plain ? 16 : 256));
      const uint32_t word[8] = {low.x,  low.y,  low.z,  low.w,
                                high.x, high.y, high.z, high.w};
#pragma unroll
      for (int s = 0; s < 8; ++s) {
        // Sign to bit 15, exponent and mantissa to bits 10..4, in both halves.
        const uint32_t w = word[s];
        step[s][half] = (w << 8 & 0x80008000u) | (w << 4 & 0x07F007F0u);
        step[s][2 + half] = (w & 0x80008000u) | (w >> 4 & 0x07F007F0u);
      }
    }
  }
};

// Describes B to the matrix unit: rows of 128 bytes, swizzled, 8 rows every
// 1,024 bytes.
__device__ inline uint64_t descriptor(const std::byte* lds) {
  const auto address =
      static_cast<uint32_t>(__cvta_generic_to_shared(lds)) >> 4;
  return uint64_t{address & 0x3FFFu} | uint64_t{1} << 16 |
         uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

// One step of 16 positions: 64 keys times 32, 64 or 128 heads, whose sums a
// lane holds 16, 32 or 64 of. The instruction names every register.
#define EXACT_TOPK_SUMS_4(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define EXACT_TOPK_SUMS_16(i)                                               \
  EXACT_TOPK_SUMS_4(i), EXACT_TOPK_SUMS_4(i + 4), EXACT_TOPK_SUMS_4(i + 8), \
      EXACT_TOPK_SUMS_4(i + 12)
#define EXACT_TOPK_SUMS_32(i) EXACT_TOPK_SUMS_16(i), EXACT_TOPK_SUMS_16(i + 16)
#define EXACT_TOPK_SUMS_64(i) EXACT_TOPK_SUMS_32(i), EXACT_TOPK_SUMS_32(i + 32)
#define EXACT_TOPK_NAMES_16 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define EXACT_TOPK_NAMES_32                                                  \
  EXACT_TOPK_NAMES_16                                                        \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, " \
  "%30, %31"
#define EXACT_TOPK_NAMES_64                                                  \
  EXACT_TOPK_NAMES_32                                                        \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, " \
  "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "   \
  "%60, %61, %62, %63"
#define EXACT_TOPK_MULTIPLY(sums, heads, keys, queries, predicate)        \
  __device__ inline void multiply(float(&d)[sums], const uint32_t(&a)[4], \
                                  uint64_t b, bool add) {                 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " predicate            \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" heads          \
                 "k16.f32.bf16.bf16 {" EXACT_TOPK_NAMES_##sums            \
                 "}, {" keys "}, " queries ", p, 1, 1, 0;\n}"             \
                 : EXACT_TOPK_SUMS_##sums(0)                              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),    \
                   "r"(static_cast<int>(add)));                           \
  }
EXACT_TOPK_MULTIPLY(16, "32", "%16, %17, %18, %19", "%20", "%21")
EXACT_TOPK_MULTIPLY(32, "64", "%32, %33, %34, %35", "%36", "%37")
EXACT_TOPK_MULTIPLY(64, "128", "%64, %65, %66, %67", "%68", "%69")
#undef EXACT_TOPK_MULTIPLY
#undef EXACT_TOPK_NAMES_64
#undef EXACT_TOPK_NAMES_32
#undef EXACT_TOPK_NAMES_16
#undef EXACT_TOPK_SUMS_64
#undef EXACT_TOPK_SUMS_32
#undef EXACT_TOPK_SUMS_16
#undef EXACT_TOPK_SUMS_4

// Partial sums of a lane: its heads' share of two keys, 8 apart, of each row.
template <int Rows>
struct PartialScores {
  float key[2][Rows];
};

// Adds `Some` rows from `row` on, 32 heads of each.
template <int Some, int Rows>
__device__ inline void add_heads(const KeyFragment& keys,
                                 const QueryBlock& block, int head_tile,
                                 int row, int lane, PartialScores<Rows>& sums) {
  float d[Some * 16];
  const std::byte* const queries = block.queries(head_tile, row);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int s = 0; s < 8; ++s)
    multiply(d, keys.step[s],
             descriptor(queries + s / 4 * block.half_bytes() + s % 4 * 32),
             s > 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < Some; ++i) {
    const float* const weights = block.row_weights(row + i) +
                                 head_tile * QueryBlock::kHeadTile +
                                 lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 weight = *reinterpret_cast<const float2*>(weights + 8 * j);
      const float* const dots = d + i * 16 + j * 4;
#pragma unroll
      for (int key = 0; key < 2; ++key) {
        float& sum = sums.key[key][row + i];
        sum = fmaf(weight.x, fmaxf(dots[2 * key], 0.0f), sum);
        sum = fmaf(weight.y, fmaxf(dots[2 * key + 1], 0.0f), sum);
      }
    }
  }
}

// Adds up the partial sums of a key's four lanes, each lane keeping some of the
// results, and calls sink(row, key, sum). Where two rows or keys are to be
// parted, each lane of a pair sends the other one's.
template <int Wave, int Rows, class Sink>
__device__ inline void add_lanes(const PartialScores<Rows>& sums, int lane,
                                 float unit, const Sink& sink) {
  const bool odd = lane % 2 == 1;
  const bool upper = lane % 4 >= 2;
  const int key = lane / 4;
  const auto part = [&](float even, float other, bool second, int mask) {
    return (second ? other : even) +
           shuffle_xor<Wave>(second ? even : other, mask);
  };
  if constexpr (Rows == 1) {
    float sum = part(sums.key[0][0], sums.key[1][0], odd, 1);
    sum += shuffle_xor<Wave>(sum, 2);
    if (!upper) sink(0, key + (odd ? 8 : 0), sum * unit);
  } else if constexpr (Rows == 2) {
    const float low = part(sums.key[0][0], sums.key[0][1], odd, 1);
    const float high = part(sums.key[1][0], sums.key[1][1], odd, 1);
    sink(odd ? 1 : 0, key + (upper ? 8 : 0), part(low, high, upper, 2) * unit);
  } else {
    const int row = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* const s = sums.key[half];
      const float first = part(s[0], s[1], odd, 1);
      const float second = part(s[2], Rows == 4 ? s[Rows - 1] : 0.0f, odd, 1);
      const float sum = part(first, second, upper, 2);
      if (row < Rows) sink(row, key + 8 * half, sum * unit);
    }
  }
}

}  // namespace nvidia

/// As mma.h says; the four waves of a warpgroup call together, each with its
/// own keys.
template <int Wave, int Rows, class Sink>
__device__ inline void score_tile_block(const KeyTile& keys,
                                        const QueryBlock& block,
                                        const Sink& sink) {
  const int lane = hip::lane<Wave>();
  const nvidia::KeyFragment fragment(keys, lane);
  nvidia::PartialScores<Rows> sums = {};
  for (int tile = 0; tile < block.head_tiles(); ++tile) {
    // The wider, the better: a product waits for its keys' registers as long
    // whatever its width.
    if constexpr (Rows == 4) {
      nvidia::add_heads<4>(fragment, block, tile, 0, lane, sums);
    } else {
      if constexpr (Rows >= 2)
        nvidia::add_heads<2>(fragment, block, tile, 0, lane, sums);
      if constexpr (Rows % 2 == 1)
        nvidia::add_heads<1>(fragment, block, tile, Rows - 1, lane, sums);
    }
  }
  nvidia::add_lanes<Wave>(sums, lane, keys.fnuz ? 0x1p59f : 0x1p60f, sink);
}

namespace nvidia {

// Adds up Have sums over the lanes by halves; each lane keeps half of what it
// has, so that lane l ends with sum l in the first place. (A loop over the
// halves would index registers by a variable.)
template <int Have, int Count>
__device__ inline void add_halves(float (&sum)[Count], int lane) {
  if constexpr (Have > 1) {
    constexpr int kHalf = Have / 2;
    const bool upper = (lane & kHalf) != 0;
#pragma unroll
    for (int k = 0; k < kHalf; ++k) {
      const float keep = upper ? sum[k + kHalf] : sum[k];
      const float send = upper ? sum[k] : sum[k + kHalf];
      sum[k] = keep + __shfl_xor_sync(~0u, send, kHalf);
    }
    add_halves<kHalf>(sum, lane);
  }
}

__device__ inline uint4 load_row(const uint16_t* row, bool there) {
  return there ? *reinterpret_cast<const uint4*>(row) : uint4{0, 0, 0, 0};
}

__device__ inline void multiply(float (&d)[4], uint32_t a0, uint32_t a1,
                                uint32_t a2, uint32_t a3, uint32_t b0,
                                uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace nvidia

/// As mma.h says; bf16 weights.
template <int Wave, class Sink>
__device__ inline void front_tile_to(const uint16_t* weights, int weight_stride,
                                     int outputs, const uint16_t* x,
                                     int x_stride, int rows, int inputs,
                                     const Sink& sink) {
  constexpr int kStep = 32;  // elements of a row, 8 a lane
  const int lane = hip::lane<Wave>();
  const int group = lane / 4;
  const int first = lane % 4 * 8;
  const uint16_t* low =
      weights + static_cast<size_t>(group) * weight_stride + first;
  const uint16_t* high = low + static_cast<size_t>(8) * weight_stride;
  const uint16_t* row = x + static_cast<size_t>(group) * x_stride + first;
  const bool has_low = group < outputs;
  const bool has_high = group + 8 < outputs;
  const bool has_row = group < rows;
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
  for (int i = 0; i < inputs; i += kStep) {
    const uint4 a = nvidia::load_row(low + i, has_low);
    const uint4 b = nvidia::load_row(high + i, has_high);
    const uint4 v = nvidia::load_row(row + i, has_row);
    nvidia::multiply(d, a.x, b.x, a.y, b.y, v.x, v.y);
    nvidia::multiply(d, a.z, b.z, a.w, b.w, v.z, v.w);
  }
#pragma unroll
  for (int e = 0; e < 4; ++e)
    sink(lane % 4 * 2 + e % 2, group + e / 2 * 8, d[e]);
}

/// As mma.h says; f32 weights.
template <int Wave, class Sink>
__device__ inline void front_tile_to(const float* weights, int weight_stride,
                                     int outputs, const uint16_t* x,
                                     int x_stride, int rows, int inputs,
                                     const Sink& sink) {
  constexpr int kSome = 4;  // outputs at a time
  const int lane = hip::lane<Wave>();
  for (int first = 0; first < outputs; first += kSome) {
    float sum[kSome * kTileRows] = {};
#pragma unroll 2
    for (int i = lane * 4; i < inputs; i += Wave * 4) {
      float4 w[kSome];
#pragma unroll
      for (int o = 0; o < kSome; ++o)
        w[o] = first + o < outputs
                   ? *reinterpret_cast<const float4*>(
                         weights +
                         static_cast<size_t>(first + o) * weight_stride + i)
                   : float4{0, 0, 0, 0};
#pragma unroll
      for (int r = 0; r < kTileRows; ++r) {
        if (r >= rows) break;
        const uint2 v = *reinterpret_cast<const uint2*>(
            x + static_cast<size_t>(r) * x_stride + i);
#pragma unroll
        for (int o = 0; o < kSome; ++o) {
          float& s = sum[o * kTileRows + r];
          s = fmaf(w[o].x, __uint_as_float(v.x << 16), s);
          s = fmaf(w[o].y, __uint_as_float(v.x & 0xFFFF0000u), s);
          s = fmaf(w[o].z, __uint_as_float(v.y << 16), s);
          s = fmaf(w[o].w, __uint_as_float(v.y & 0xFFFF0000u), s);
        }
      }
    }
    nvidia::add_halves<Wave>(sum, lane);
    const int output = first + lane / kTileRows;
    if (output < outputs) sink(lane % kTileRows, output, sum[0]);
  }
}

}  // namespace exact_topk::hip
