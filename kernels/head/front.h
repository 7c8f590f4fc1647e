// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stages 1 to 4 in the head arm: the tasks of stages/front.h, placed on
// persistent blocks and joined by tagged pairs. What a task computes is the
// shared code's; here is only where it takes its operands from and to whom it
// hands its result.
//
// Every tensor that a launch publishes is stored plainly as well, for readers
// after the launch; no block of this launch reads those.

#include <cstdint>

#include "kernels/head/hand_off.h"
#include "kernels/head/operands.h"
#include "kernels/stages/front.h"

namespace exact_topk::kernels::head {

// The waves that one block of a grid has for tasks of a wave: task t of `tasks`
// runs on block t mod blocks, and there on waves in turn.
template <int Wave, class Task>
__device__ inline void wave_tasks(int tasks, const Task& task) {
  const int blocks = static_cast<int>(gridDim.x);
  for (int t = static_cast<int>(blockIdx.x) + hip::wave<Wave>() * blocks;
       t < tasks; t += blocks * waves_of_block<Wave>())
    task(t);
}

// Whether this block has one of `tasks` tasks dealt to blocks in turn.
__device__ inline bool has_task(int tasks) {
  return static_cast<int>(blockIdx.x) < tasks;
}

// Block of a row's task in a stage with one task a row.
__device__ inline bool row_is_mine(int row) {
  return layout::row_block(row, static_cast<int>(gridDim.x)) ==
         static_cast<int>(blockIdx.x);
}

inline constexpr int kRowPad =
    8;  // elements after each collected row, so that rows differ in LDS banks

// Bytes of LDS that `rows` collected rows take.
inline size_t collected_bytes(int rows, size_t count) {
  return static_cast<size_t>(rows) * (count + kRowPad) * sizeof(uint16_t);
}

// Collects a bf16 row area of every live row, [R][count], into LDS; pad rows
// are zeros, so that the tiles read what was written.
__device__ inline InputRows collect_rows(const Operands& o,
                                         const uint64_t* pairs, int count,
                                         std::byte* lds) {
  auto* words = reinterpret_cast<uint32_t*>(lds);
  const RowTables& rows = o.front.rows;
  const int half = count / 2;
  const int stride = half + kRowPad / 2;
  for (int first = 0; first < rows.rows;) {
    int last = first;  // of a run of rows that are all live, or all pad rows
    const bool live = rows.keys(first) > 0;
    while (last + 1 < rows.rows && (rows.keys(last + 1) > 0) == live) ++last;
    const int items = (last - first + 1) * half;
    uint32_t* to = words + first * stride;
    RowCursor cursor(half);
    const auto put = [&](int i, uint32_t word) {
      cursor.move_to(i);
      to[cursor.row() * stride + cursor.item()] = word;
    };
    if (live) {
      collect(pairs + int64_t{first} * half, items, o.tag, put);
    } else {
      for (int i = static_cast<int>(threadIdx.x); i < items;
           i += static_cast<int>(blockDim.x))
        put(i, 0);
    }
    first = last + 1;
  }
  __syncthreads();
  return {reinterpret_cast<const uint16_t*>(lds), count + kRowPad};
}

// Stores a norm's elements to memory and hands them on.
struct PublishNorm {
  StoreNorm store;  // for after the launch
  uint64_t* pairs;  // [count / 2]
  uint32_t tag;     // of the launch

  __device__ void operator()(int v, uint2 elements) const {
    store(v, elements);
    hip::pair_store(pairs + 2 * v, elements.x, tag);
    hip::pair_store(pairs + 2 * v + 1, elements.y, tag);
  }
};

template <int Wave>
__device__ inline void input_stage(const Operands& o, std::byte* lds) {
  const int hidden = o.front.geometry.hidden;
  for (int row = 0; row < o.front.rows.rows; ++row) {
    if (o.front.rows.keys(row) == 0 || !row_is_mine(row)) continue;
    const PublishNorm publish{{o.front.x + int64_t{row} * hidden},
                              o.pairs.x + int64_t{row} * (hidden / 2),
                              o.tag};
    input_task<Wave>(o.front, row, publish, *reinterpret_cast<NormLds*>(lds));
    __syncthreads();
  }
}

// Tasks of a block dealt to blocks in turn; task(t, turn) is the block's
// turn-th.
template <class Task>
__device__ inline void block_tasks(int tasks, const Task& task) {
  int turn = 0;
  for (int t = static_cast<int>(blockIdx.x); t < tasks;
       t += static_cast<int>(gridDim.x))
    task(t, turn++);
}

template <int Wave>
__device__ inline void down_stage(const Operands& o, std::byte* raw_lds) {
  const FrontOperands& f = o.front;
  const int tasks = down_tasks(f.geometry);
  if (!has_task(tasks)) return;
  auto& lds = *reinterpret_cast<ProjectLds*>(raw_lds);
  const InputRows x = collect_rows(o, o.pairs.x, f.geometry.hidden,
                                   raw_lds + sizeof(ProjectLds));
  const auto q_down = [&](int row, int output, float value) {
    hip::pair_store(o.pairs.q_down + int64_t{row} * f.geometry.q_lora + output,
                    float_bits(value), o.tag);
  };
  const auto raw_key = [&](int row, int output, float value) {
    f.raw_key[row * kHeadDim + output] = value;
    hip::pair_store(o.pairs.raw_key + row * kHeadDim + output,
                    float_bits(value), o.tag);
  };
  const auto w = [&](int row, int output, float value) {
    f.w[row * f.geometry.heads + output] = value;
    hip::pair_store(o.pairs.w + row * f.geometry.heads + output,
                    float_bits(value), o.tag);
  };
  block_tasks(tasks, [&](int task, int turn) {
    down_task<Wave>(f, task, x, q_down, raw_key, w, turn, lds);
  });
}

template <int Wave>
__device__ inline void norm_stage(const Operands& o, std::byte* lds) {
  const FrontOperands& f = o.front;
  const int count = f.geometry.q_lora;
  for (int row = 0; row < f.rows.rows; ++row) {
    if (f.rows.keys(row) == 0 || !row_is_mine(row)) continue;
    const uint64_t* down = o.pairs.q_down + int64_t{row} * count;
    const auto fill = [&](float* values) {
      collect(down, count, o.tag, [values](int i, uint32_t payload) {
        values[i] = bits_float(payload);
      });
    };
    const PublishNorm publish{{f.q_lora + int64_t{row} * count},
                              o.pairs.q_lora + int64_t{row} * (count / 2),
                              o.tag};
    norm_task<Wave>(f, fill, publish, *reinterpret_cast<NormLds*>(lds));
    __syncthreads();
  }
}

template <int Wave>
__device__ inline void up_stage(const Operands& o, std::byte* raw_lds) {
  const FrontOperands& f = o.front;
  const int tasks = up_tasks(f.geometry);
  if (!has_task(tasks)) return;
  auto& lds = *reinterpret_cast<ProjectLds*>(raw_lds);
  const InputRows q_lora = collect_rows(o, o.pairs.q_lora, f.geometry.q_lora,
                                        raw_lds + sizeof(ProjectLds));
  const int outputs = f.geometry.heads * kHeadDim;
  const auto mailbox = [&](int row, int output, float value) {
    f.mailbox[int64_t{row} * outputs + output] = value;
    hip::pair_store(o.pairs.mailbox + int64_t{row} * outputs + output,
                    float_bits(value), o.tag);
  };
  block_tasks(tasks, [&](int task, int turn) {
    up_task<Wave>(f, task, q_lora, mailbox, turn, lds);
  });
}

// This lane's dims of a head or raw key: from pairs where this launch makes it,
// else from memory.
template <int Wave>
__device__ inline HeadVector<Wave> take_head(const Operands& o,
                                             const uint64_t* pairs,
                                             const float* memory) {
  using Vector = HeadVector<Wave>;
  if (!(o.parts & kFrontPart)) return Vector::load(memory);
  Vector v;
  for (int e = 0; e < Vector::kEach; ++e)
    v.value[e] =
        bits_float(hip::pair_poll(pairs + Vector::first_dim() + e, o.tag));
  return v;
}

// Four key bytes in lanes that hold the first of them; other lanes get a part
// that nobody uses.
template <int Wave>
__device__ inline uint32_t key_word(const QuantisedKey<Wave>& key) {
  constexpr int kEach = HeadVector<Wave>::kEach;
  uint32_t word = 0;
  for (int e = 0; e < kEach; ++e) word |= uint32_t{key.byte[e]} << (8 * e);
  for (int have = kEach; have < 4; have *= 2)
    word |= hip::shuffle_xor<Wave>(word, have / kEach) << (8 * have);
  return word;
}

// Index keys, one wave a row. The cached copy is stored word by word for
// later launches: blocks that copy its page meanwhile read old or new words,
// and patch the key from the pairs in any case.
template <int Wave>
__device__ inline void key_stage(const Operands& o) {
  const FrontOperands& f = o.front;
  wave_tasks<Wave>(f.rows.rows, [&](int row) {
    if (f.rows.keys(row) == 0) return;
    const auto key =
        key_task<Wave>(f, row,
                       take_head<Wave>(o, o.pairs.raw_key + row * kHeadDim,
                                       f.raw_key + row * kHeadDim));
    const uint32_t word = key_word<Wave>(key);
    const int dim = HeadVector<Wave>::first_dim();
    const int32_t slot = f.slots[row];
    uint64_t* pairs = o.pairs.key + int64_t{row} * (kKeyWords + 1);
    if (dim % 4 == 0) {
      hip::store_for_later(
          reinterpret_cast<uint32_t*>(
              f.cache + key_byte(slot, dim, f.geometry.page_layout)),
          word);
      hip::pair_store(pairs + dim / 4, word, o.tag);
    }
    if (dim == 0) {
      hip::store_for_later(
          reinterpret_cast<uint32_t*>(f.cache + scale_byte(slot)),
          float_bits(key.scale));
      hip::pair_store(pairs + kKeyWords, float_bits(key.scale), o.tag);
    }
  });
}

// Index queries, one wave a row and head; a task of the placement is 8 heads.
template <int Wave>
__device__ inline void query_stage(const Operands& o) {
  const FrontOperands& f = o.front;
  const int heads = f.geometry.heads;
  const int tasks_a_row = heads / layout::kQueryHeads;
  const int blocks = static_cast<int>(gridDim.x);
  for (int task = static_cast<int>(blockIdx.x);
       task < f.rows.rows * tasks_a_row; task += blocks) {
    const int row = task / tasks_a_row;
    if (f.rows.keys(row) == 0) continue;
    const int first = task % tasks_a_row * layout::kQueryHeads;
    for (int head = first + hip::wave<Wave>();
         head < first + layout::kQueryHeads; head += waves_of_block<Wave>()) {
      const int64_t start = (int64_t{row} * heads + head) * kHeadDim;
      const auto query = query_task<Wave>(
          f, row, head,
          take_head<Wave>(o, o.pairs.mailbox + start, f.mailbox + start));
      constexpr int kEach = HeadVector<Wave>::kEach;
      for (int e = 0; e < kEach; e += 2) {
        const uint32_t word = uint32_t{f32_to_bf16(query.value[e])} |
                              uint32_t{f32_to_bf16(query.value[e + 1])} << 16;
        hip::pair_store(
            o.pairs.query + (start + HeadVector<Wave>::first_dim() + e) / 2,
            word, o.tag);
      }
    }
  }
}

}  // namespace exact_topk::kernels::head
