// SPDX-License-Identifier: Apache-2.0
#pragma once

// HIP on the CPU: kernels run without a GPU, and what hardware hides is
// reported.
//
// Every GPU thread is a fiber. One OS thread runs a whole launch, so a launch
// is a function of its inputs, the schedule and the fill seed. A thread runs
// until it waits:
//
//   barrier      counts arrivals by (block, generation, call site)
//   collective   a wave's lanes meet; the last to arrive computes the result
//   for all of them in one go poll         waits until a condition on memory
//   holds; the scheduler tests it, so a poll costs no switch
//
// When nothing can run, the launch is diagnosed and fails with one sentence
// that says who waits where. Further reports are made for writes outside
// allocations and LDS. A failed launch abandons its threads (no destructors
// run); the next one works. Blocks of a cooperative launch live together; those
// of an ordinary launch run one after another, so a wait of one for another is
// reported as the deadlock that it can be on a GPU.
//
// What it does not do: preempt a thread between two waits (a loop that spins
// without a poll hangs), model weak memory but for stores that are said to be
// for later (ThreadSanitizer builds find missing synchronisation instead), or
// report reads of unwritten memory by itself:
// fresh LDS and memory hold a pattern that depends on the fill seed, so such a
// read changes the result with the seed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/hip/cpu/sanitizer.h"
#include "kernels/hip/cpu/site.h"

namespace exact_topk::hip::cpu {

/// How launches run, for the whole process. Set it while no launch runs.
struct Options {
  int wave_size = 64;                    ///< lanes a wave, 64 or 32
  std::string schedule = "round-robin";  ///< see schedule.h
  std::uint64_t seed = 1;                ///< what fresh LDS and memory hold
  int compute_units =
      16;  ///< multiProcessorCount, the natural grid of a cooperative launch
  /// Stack of a thread, at least 16 KiB, rounded up to whole pages.
  std::size_t stack_bytes = sanitizer::kAddress ? 256 << 10 : 64 << 10;
};

/// Throws std::invalid_argument with one sentence for a value that is out of
/// range or a schedule that does not parse.
void set_options(const Options& options);
const Options& options();

/// What the last failed launch or check of this OS thread said: one sentence,
/// empty if none failed so far.
const std::string& last_report();

/// Most threads of a launch that can live together (Linux bounds guarded
/// stacks to about 32,000, ThreadSanitizer its fibers): 64 blocks of the head
/// arm, so that a row can have as many slices as anywhere.
inline constexpr std::size_t kMostThreads = sanitizer::kThread ? 7'680 : 24'576;
/// Most threads a block.
inline constexpr std::uint32_t kMostBlockThreads = 1024;
/// LDS of a block in bytes: what gfx950 has.
inline constexpr std::size_t kLdsBytes = 160 << 10;

/// A triple of sizes or indices, HIP's dim3.
struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  constexpr Dim3() = default;
  constexpr Dim3(std::uint32_t x_, std::uint32_t y_ = 1, std::uint32_t z_ = 1)
      : x(x_), y(y_), z(z_) {}
};

/// What the lanes of one collective hand to the lane that computes it.
struct Meeting {
  void* const* args;  ///< [lanes a wave] each lane's argument; only those in
                      ///< `present` are set
  std::uint64_t present;  ///< the lanes taking part
  int width;              ///< lanes a wave
};

/// A wave operation: how it is named in reports, and computed.
struct Collective {
  const char* name;                 ///< "shuffle", "ballot" ...
  void (*compute)(const Meeting&);  ///< run once by the last lane to arrive;
                                    ///< results go through the arguments
  int (*source)(const void* arg,
                int lane);  ///< the lane that this lane reads, or nullptr where
                            ///< it reads none or all
  bool whole;               ///< every lane of the wave must take part
};

/// What device code may see of its block.
struct BlockView {
  Dim3 index;      ///< blockIdx
  Dim3 dim;        ///< blockDim
  Dim3 grid;       ///< gridDim
  int wave_size;   ///< warpSize
  std::byte* lds;  ///< the block's dynamic LDS
};

/// What device code may see of its thread.
struct ThreadView {
  Dim3 index;            ///< threadIdx
  BlockView* block;      ///< its block
  std::uint32_t thread;  ///< linear index in the block, x fastest
  std::uint32_t lane;    ///< linear index in its wave
  std::uint32_t wave;    ///< index of its wave in the block
};

/// The GPU thread that runs now on this OS thread; nullptr in host code. Fibers
/// never move between OS threads. initial-exec keeps the access one load even
/// where the runtime is linked into a plug-in.
extern thread_local ThreadView* current
    __attribute__((tls_model("initial-exec")));

/// __syncthreads: waits for every thread of the block.
void barrier(Site site);

/// Meets the other lanes in `mask` (~0: all of the wave). Returns when the
/// collective is computed.
void meet(const Collective& collective, void* arg, std::uint64_t mask,
          Site site);

/// Waits until ready(arg) holds; the caller has seen that it does not yet hold.
void wait_until(bool (*ready)(const void* arg), const void* arg, Site site);

/// Stores a word when the launch ends: the latest moment at which a store that
/// nothing orders may become visible.
void store_late(std::uint32_t* word, std::uint32_t value);

/// Fails the launch because its kernel was compiled for waves of another size.
[[noreturn]] void fail_wave_size(int compiled_for);

/// The kernel of a launch with its arguments bound.
struct Kernel {
  void (*run)(const void* arguments);  ///< runs one thread
  const void* arguments;               ///< lives until the launch returns
};

/// Shape of a launch.
struct LaunchShape {
  Dim3 grid;              ///< blocks
  Dim3 block;             ///< threads a block
  std::size_t lds_bytes;  ///< dynamic LDS a block
  bool cooperative;       ///< all blocks live together
};

enum class LaunchResult { success, invalid_configuration, too_large, failed };

/// Runs a launch to its end on the calling OS thread. `failed` leaves a report.
LaunchResult launch(const Kernel& kernel, const LaunchShape& shape);

/// Leaves a report outside of a launch (a check of allocations at hipFree).
void set_report(std::string sentence);

}  // namespace exact_topk::hip::cpu
