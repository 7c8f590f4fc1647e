// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/base_arm.h"

#include "kernels/base/front.h"

namespace exact_topk::kernels::base {
namespace {

// A kernel in both of its wave sizes.
template <class... Parameters>
struct Kernel {
  void (*wave32)(Parameters...);
  void (*wave64)(Parameters...);
};
template <class... Parameters>
Kernel(void (*)(Parameters...), void (*)(Parameters...))
    -> Kernel<Parameters...>;

// Launches kernels in order until one fails.
class Sequence {
 public:
  explicit Sequence(const Grid& grid) : grid_(grid) {}

  template <class... Parameters, class... Arguments>
  Sequence& run(const Kernel<Parameters...>& kernel, dim3 blocks, int threads,
                size_t lds_bytes, const Arguments&... arguments) {
    if (error_ != hipSuccess) return *this;
    hipLaunchKernelGGL(grid_.wave == 32 ? kernel.wave32 : kernel.wave64, blocks,
                       dim3(static_cast<uint32_t>(threads)),
                       static_cast<uint32_t>(lds_bytes), grid_.stream,
                       arguments...);
    error_ = hipGetLastError();
    return *this;
  }
  hipError_t error() const { return error_; }

 private:
  const Grid& grid_;               // how kernels are launched
  hipError_t error_ = hipSuccess;  // the first
};

size_t norm_lds(int count) {
  return sizeof(NormLds) + sizeof(float) * static_cast<size_t>(count);
}

// Blocks whose waves share this many tasks, one each where the grid allows.
uint32_t task_blocks(int tasks, const Grid& grid) {
  const int wanted = (tasks + kTaskWaves - 1) / kTaskWaves;
  return static_cast<uint32_t>(wanted < grid.blocks ? wanted : grid.blocks);
}

uint32_t tile_blocks(int tiles, const Grid& grid) {
  return static_cast<uint32_t>(tiles < grid.blocks ? tiles : grid.blocks);
}

uint32_t row_blocks(const RowTables& rows) {
  return static_cast<uint32_t>(rows.rows);
}

}  // namespace

hipError_t launch_front(const FrontOperands& o, const Grid& grid) {
  const dim3 rows(row_blocks(o.rows));
  return Sequence(grid)
      .run(Kernel{input_rows<hip::kSmallWave>, input_rows<hip::kLargeWave>},
           rows, kNormThreads, norm_lds(o.geometry.hidden), o)
      .run(Kernel{project_down<hip::kSmallWave>, project_down<hip::kLargeWave>},
           dim3(tile_blocks(down_tasks(o.geometry), grid)), kProjectThreads,
           sizeof(ProjectLds), o)
      .run(Kernel{norm_rows<hip::kSmallWave>, norm_rows<hip::kLargeWave>}, rows,
           kNormThreads, norm_lds(o.geometry.q_lora), o)
      .run(Kernel{project_up<hip::kSmallWave>, project_up<hip::kLargeWave>},
           dim3(tile_blocks(up_tasks(o.geometry), grid)), kProjectThreads,
           sizeof(ProjectLds), o)
      .error();
}

hipError_t launch_keys_and_queries(const FrontOperands& o, const Grid& grid) {
  const dim3 blocks(task_blocks(1 + o.geometry.heads, grid),
                    row_blocks(o.rows));
  return Sequence(grid)
      .run(Kernel{keys_and_queries<hip::kSmallWave>,
                  keys_and_queries<hip::kLargeWave>},
           blocks, kTaskWaves * grid.wave, 0, o)
      .error();
}

hipError_t launch_scores(const ScoreOperands& o, const Grid& grid) {
  const dim3 blocks(static_cast<uint32_t>(grid.blocks), row_blocks(o.rows));
  return Sequence(grid)
      .run(Kernel{score_rows<hip::kSmallWave>, score_rows<hip::kLargeWave>},
           blocks, kTaskWaves * grid.wave,
           hip::QueryBlock::bytes(1, o.geometry.heads), o)
      .error();
}

hipError_t launch_selection(const SelectOperands& o, int64_t largest_keys,
                            const Grid& grid) {
  const dim3 rows(row_blocks(o.rows));
  const dim3 slices(kSlices, row_blocks(o.rows));
  Sequence sequence(grid);
  sequence.run(Kernel{select_short_rows<hip::kSmallWave>,
                      select_short_rows<hip::kLargeWave>},
               rows, kSelectThreads, sizeof(SelectLds), o);
  if (largest_keys <= kOneBlockKeys) return sequence.error();
  for (int pass = 0; pass < kPasses; ++pass) {
    sequence
        .run(Kernel{count_slices<hip::kSmallWave>,
                    count_slices<hip::kLargeWave>},
             slices, kSelectThreads, sizeof(RadixLds), o, pass)
        .run(Kernel{add_slices<hip::kSmallWave>, add_slices<hip::kLargeWave>},
             rows, kSelectThreads, sizeof(RadixLds), o, pass);
  }
  return sequence
      .run(Kernel{place_slices<hip::kSmallWave>, place_slices<hip::kLargeWave>},
           slices, kSelectThreads, sizeof(PlaceLds), o)
      .run(Kernel{resolve_slices<hip::kSmallWave>,
                  resolve_slices<hip::kLargeWave>},
           rows, kSelectThreads, sizeof(ResolveLds), o)
      .error();
}

}  // namespace exact_topk::kernels::base
