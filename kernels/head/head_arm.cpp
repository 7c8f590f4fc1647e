// SPDX-License-Identifier: Apache-2.0
#include "kernels/head/head_arm.h"

#include <algorithm>

#include "kernels/head/front.h"
#include "kernels/head/score.h"
#include "kernels/head/select.h"

namespace exact_topk::kernels::head {
namespace {

// LDS that every stage keeps: the launch's rows and their groups. The stages'
// own LDS follows, aligned as the score stage wants it.
struct Plan {
  layout::Groups groups;                // of the launch
  bool live[layout::kMaxRows];          // whether each row is
  bool joined[layout::kMaxRows];        // whether each joins the row before it
  int32_t positions[layout::kMaxRows];  // copies of the launch's inputs
  int32_t requests[layout::kMaxRows];
  int32_t slots[layout::kMaxRows];
  int32_t indptr[layout::kMaxRows];
};
constexpr size_t kPlanBytes = 1024;
static_assert(sizeof(Plan) <= kPlanBytes &&
              kPlanBytes % hip::QueryBlock::kAlignment == 0);

// Copies what the launch says of each row to LDS, all at once, and lets the
// operands name the copies.
__device__ void take_rows(Operands& o, Plan& plan) {
  const auto row = static_cast<int>(threadIdx.x);
  if (row < o.front.rows.rows) {
    plan.positions[row] = o.front.rows.positions[row];
    if (o.requests != nullptr) plan.requests[row] = o.requests[row];
    if (o.front.slots != nullptr) plan.slots[row] = o.front.slots[row];
    if (o.select.indptr != nullptr) plan.indptr[row] = o.select.indptr[row];
  }
  __syncthreads();
  o.front.rows.positions = plan.positions;
  o.score.rows.positions = plan.positions;
  o.requests = plan.requests;
  o.front.slots = plan.slots;
  o.select.indptr = plan.indptr;
}

// The group rule is a chain of loads: every row's by a thread of its own.
__device__ void plan_groups(const layout::RowsView& view, Plan& plan) {
  const auto row = static_cast<int>(threadIdx.x);
  if (row < view.rows) {
    plan.live[row] = view.live(row);
    plan.joined[row] = layout::joins(view, row);
  }
  __syncthreads();
  if (row != 0) return;
  unsigned live = 0;
  unsigned joined = 0;
  for (int i = 0; i < view.rows; ++i) {
    live |= static_cast<unsigned>(plan.live[i]) << i;
    joined |= static_cast<unsigned>(plan.joined[i]) << i;
  }
  plan.groups = layout::groups_of(view.rows, live, joined);
}
static_assert(kThreads >= kNormPartials);

// Grid: any number of blocks, all resident. Every block walks the stages in the
// same order.
template <int Wave>
__global__ void __launch_bounds__(kThreads, 1) head_launch(Operands o) {
  HIP_DYNAMIC_SHARED(std::byte, lds)
  Plan& plan = *reinterpret_cast<Plan*>(lds);
  std::byte* stage_lds = lds + kPlanBytes;
  take_rows(o, plan);
  const layout::RowsView view = o.view();
  if (o.parts & kScorePart) plan_groups(view, plan);
  if (o.parts & kFrontPart) {
    input_stage<Wave>(o, stage_lds);
    __syncthreads();
    down_stage<Wave>(o, stage_lds);
    __syncthreads();
    norm_stage<Wave>(o, stage_lds);
    __syncthreads();
    up_stage<Wave>(o, stage_lds);
  }
  if (o.parts & kKeyQueryPart) {
    key_stage<Wave>(o);
    query_stage<Wave>(o);
  }
  __syncthreads();
  if (o.parts & kScorePart) {
    score_stage<Wave>(o, view, plan.groups, stage_lds);
    __syncthreads();
  }
  if (o.parts & kSelectPart)
    select_stage<Wave>(o, view, plan.groups, stage_lds);
}

// Grid: any.
__global__ void __launch_bounds__(kThreads, 1) nothing() {}

}  // namespace

LdsPlan plan_lds(const Geometry& g, int rows, size_t lds_limit) {
  const auto widest = static_cast<size_t>(std::max(g.hidden, g.q_lora));
  const size_t front =
      std::max(sizeof(NormLds) + sizeof(float) * widest,
               sizeof(ProjectLds) + collected_bytes(rows, widest));
  int batch = layout::kBatchPages;
  while (batch > 1 && kPlanBytes + ScoreLds::bytes(g.heads, batch) > lds_limit)
    batch /= 2;
  return {batch, kPlanBytes + std::max({front, ScoreLds::bytes(g.heads, batch),
                                        sizeof(SliceLds)})};
}

size_t HandOffSizes::words() const {
  return x + q_down + q_lora + mailbox + raw_key + w + query + key + run_done +
         gather + extreme + candidate;
}

HandOffSizes hand_off_sizes(const Geometry& g, int rows) {
  const auto r = static_cast<size_t>(rows);
  const auto heads = static_cast<size_t>(g.heads);
  return {
      r * static_cast<size_t>(g.hidden) / 2,
      r * static_cast<size_t>(g.q_lora),
      r * static_cast<size_t>(g.q_lora) / 2,
      r * heads * kHeadDim,
      r * kHeadDim,
      r * heads,
      r * heads * kHeadDim / 2,
      r * (kKeyWords + 1),
      size_t{layout::kMaxRows} * layout::kMaxRuns,
      size_t{kGathers} * layout::kMaxRows * layout::kMaxSlices * kGatherWords,
      size_t{layout::kMaxRows} * layout::kMaxSlices * 2,
      size_t{layout::kMaxRows} * kRoom};
}

HandOff hand_off(uint64_t* words, const HandOffSizes& s) {
  const auto take = [&words](size_t count) {
    uint64_t* area = words;
    words += count;
    return area;
  };
  return {take(s.x),        take(s.q_down), take(s.q_lora),  take(s.mailbox),
          take(s.raw_key),  take(s.w),      take(s.query),   take(s.key),
          take(s.run_done), take(s.gather), take(s.extreme), take(s.candidate)};
}

hipError_t launch_empty(const base::Grid& grid) {
  return hipLaunchCooperativeKernel(nothing,
                                    dim3(static_cast<uint32_t>(grid.blocks)),
                                    dim3(kThreads), nullptr, 0, grid.stream);
}

hipError_t launch(const Operands& operands, const base::Grid& grid,
                  size_t lds_bytes) {
  Operands o = operands;
  void* arguments[] = {&o};
  const dim3 blocks(static_cast<uint32_t>(grid.blocks));
  const dim3 threads(kThreads);
  const auto bytes = static_cast<uint32_t>(lds_bytes);
  return grid.wave == 32
             ? hipLaunchCooperativeKernel(head_launch<hip::kSmallWave>, blocks,
                                          threads, arguments, bytes,
                                          grid.stream)
             : hipLaunchCooperativeKernel(head_launch<hip::kLargeWave>, blocks,
                                          threads, arguments, bytes,
                                          grid.stream);
}

}  // namespace exact_topk::kernels::head
