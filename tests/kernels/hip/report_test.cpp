// SPDX-License-Identifier: Apache-2.0
// Known-bad kernels: each must give its own report, whatever the schedule, and
// leave the runtime fit for the next launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "kernels/hip/atomics.h"
#include "kernels/hip/wave.h"
#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

using testing::MatchesRegex;

std::string at(int line) { return "report_test.cpp:" + std::to_string(line); }

__global__ void good(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  lds[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = lds[blockDim.x - 1 - threadIdx.x];
}

void expect_good_launch() {
  DeviceArray<unsigned> out(128);
  ASSERT_EQ(launch(good, 1, 128, 128 * 4, out.data()), hipSuccess)
      << cpu::last_report();
  const auto host = out.host();
  for (unsigned t = 0; t < 128; ++t) EXPECT_EQ(host[t], 127 - t);
}

// Runs a bad kernel under every schedule; `report` is the same for all of them.
template <class... Parameters>
void expect_report(const std::string& report, void (*kernel)(Parameters...),
                   dim3 grid, dim3 block, std::uint32_t lds_bytes,
                   std::type_identity_t<Parameters>... arguments) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    EXPECT_EQ(launch(kernel, grid, block, lds_bytes, arguments...),
              hipErrorLaunchFailure)
        << schedule;
    EXPECT_EQ(cpu::last_report(), report) << schedule;
    EXPECT_EQ(hipGetLastError(), hipSuccess) << "the error was read";
    expect_good_launch();
  }
}

// ---- barriers
// -------------------------------------------------------------------------------------------------------

constexpr int kDivergent = __LINE__;
__global__ void divergent_barrier() {
  __syncthreads();
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(Report, DivergentBarrier) {
  expect_report(
      "divergent barrier in block (0,0,0), generation 1: threads 0-31 wait at "
      "the barrier at " +
          at(kDivergent + 4) + ", threads 32-63 wait at the barrier at " +
          at(kDivergent + 6),
      divergent_barrier, 1, 64, 0);
}

constexpr int kExit = __LINE__;
__global__ void exit_before_barrier() {
  if (threadIdx.x % 2 == 1 && threadIdx.x < 6) return;
  __syncthreads();
}

TEST(Report, ExitBeforeABarrier) {
  expect_report(
      "exit before a barrier in block (0,0,0), generation 0: threads "
      "0,2,4,6-63 wait at the barrier at " +
          at(kExit + 3) + ", threads 1,3,5 have exited",
      exit_before_barrier, 1, 64, 0);
}

// The sum of the block's thread numbers, with or without the barrier between
// writing and reading.
template <bool Barrier>
__global__ void tree_sum(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  lds[threadIdx.x] = threadIdx.x;
  if (Barrier) __syncthreads();
  for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {
    if (threadIdx.x < d) lds[threadIdx.x] += lds[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = lds[0];
}

template <bool Barrier>
unsigned summed(const std::string& schedule) {
  const ScopedOptions scope(with_schedule(schedule));
  DeviceArray<unsigned> out(1);
  EXPECT_EQ(launch(tree_sum<Barrier>, 1, 128, 128 * 4, out.data()), hipSuccess)
      << cpu::last_report();
  return out.host()[0];
}

TEST(Report, AMissingBarrierGivesAWrongSumUnderSomeSchedule) {
  if (cpu::sanitizer::kThread)
    GTEST_SKIP() << "ThreadSanitizer reports it: race_test.cpp";
  constexpr unsigned kSum = 127 * 128 / 2;
  EXPECT_EQ(summed<false>("reverse"), kSum)
      << "readers run after writers: luck hides the fault";
  EXPECT_NE(summed<false>("round-robin"), kSum);
  for (int seed = 1; seed <= 8; ++seed)
    EXPECT_NE(summed<false>("random:" + std::to_string(seed)), kSum) << seed;
  for (const auto& schedule : schedules())
    EXPECT_EQ(summed<true>(schedule), kSum) << schedule;
}

// ---- collectives
// ----------------------------------------------------------------------------------------------------

constexpr int kExited = __LINE__;
__global__ void shuffle_from_exited(int* out) {
  if (threadIdx.x >= 40) return;
  out[threadIdx.x] = shuffle<64>(1, threadIdx.x == 7 ? 41 : 0);
}

TEST(Report, ShuffleFromAnExitedLane) {
  DeviceArray<int> out(64);
  expect_report(
      "shuffle from an inactive lane in block (0,0,0), wave 0: lane 7 reads "
      "lane 41 at " +
          at(kExited + 3) + " while threads 0-39 wait in shuffle at " +
          at(kExited + 3) + ", threads 40-63 have exited",
      shuffle_from_exited, 1, 64, 0, out.data());
}

constexpr int kBranch = __LINE__;
__global__ void shuffle_in_a_branch(int* out) {
  if (threadIdx.x % 64 < 32) out[threadIdx.x] = shuffle_xor<64>(1, 32);
  __syncthreads();
}

TEST(Report, ShuffleFromALaneInAnotherBranch) {
  DeviceArray<int> out(128);
  expect_report(
      "shuffle from an inactive lane in block (0,0,0), wave 0: lane 0 reads "
      "lane 32 at " +
          at(kBranch + 2) + " while threads 0-31 wait in shuffle at " +
          at(kBranch + 2) + ", threads 32-63 wait at the barrier at " +
          at(kBranch + 3),
      shuffle_in_a_branch, 1, 128, 0, out.data());
}

__global__ void shuffle_past_the_wave(int* out) {
  out[threadIdx.x] = shuffle<64>(1, 64);
}

TEST(Report, ShuffleFromALaneThatNoWaveHas) {
  DeviceArray<int> out(64);
  EXPECT_EQ(launch(shuffle_past_the_wave, 1, 64, 0, out.data()),
            hipErrorLaunchFailure);
  EXPECT_THAT(
      cpu::last_report(),
      MatchesRegex("shuffle from an inactive lane .* lane 0 reads lane 64 .*"));
}

constexpr int kIncomplete = __LINE__;
__global__ void ballot_in_a_branch(std::uint64_t* out) {
  if (threadIdx.x < 32) *out = ballot<64>(true);
  __syncthreads();
}

TEST(Report, IncompleteCollective) {
  DeviceArray<std::uint64_t> out(1);
  expect_report(
      "incomplete collective in block (0,0,0), wave 0: threads 0-31 wait in "
      "ballot at " +
          at(kIncomplete + 2) + ", threads 32-63 wait at the barrier at " +
          at(kIncomplete + 3),
      ballot_in_a_branch, 1, 64, 0, out.data());
}

constexpr int kCollectives = __LINE__;
__global__ void divergent_collective(float* out) {
  if (threadIdx.x == 0) {
    *out = wave_sum<64>(1.0f);
  } else {
    ballot<64>(true);
  }
}

TEST(Report, DivergentCollective) {
  DeviceArray<float> out(1);
  expect_report(
      "divergent collective in block (0,0,0), wave 0: threads 0 wait in "
      "reduction at " +
          at(kCollectives + 3) + ", threads 1-63 wait in ballot at " +
          at(kCollectives + 5),
      divergent_collective, 1, 64, 0, out.data());
}

constexpr int kPartial = __LINE__;
__global__ void sum_of_a_partial_wave(float* out) {
  out[threadIdx.x] = wave_sum<64>(1.0f);
}

TEST(Report, SumOfAPartialWave) {
  DeviceArray<float> out(100);
  const int line = kPartial + 2;
  expect_report(
      "reduction of 36 lanes, not 64, in block (0,0,0), wave 1: threads 64-99 "
      "wait in reduction at " +
          at(line),
      sum_of_a_partial_wave, 1, 100, 0, out.data());
}

constexpr int kMask = __LINE__;
__global__ void mask_without_caller() { __ballot_sync(0xFF, 1); }

TEST(Report, MaskWithoutItsCaller) {
  EXPECT_EQ(launch(mask_without_caller, 1, 64, 0), hipErrorLaunchFailure);
  EXPECT_EQ(cpu::last_report(), "mask without its caller in ballot at " +
                                    at(kMask + 1) + ": lane 8");
}

TEST(Report, KernelOfAnotherWaveSize) {
  const ScopedOptions scope(with_wave(32));
  DeviceArray<float> out(64);
  EXPECT_EQ(launch(sum_of_a_partial_wave, 1, 64, 0, out.data()),
            hipErrorLaunchFailure);
  EXPECT_EQ(cpu::last_report(),
            "a kernel for waves of 64 lanes runs with waves of 32");
}

// ---- memory
// ---------------------------------------------------------------------------------------------------------

__global__ void write_bytes(std::uint8_t* out, int first, int last) {
  for (int i = first; i <= last; ++i) out[i] = 1;
}

TEST(Report, GlobalOverflowByOne) {
  DeviceArray<std::uint8_t> scores(1000);
  cpu::name_allocation(scores.data(), "scores");
  EXPECT_EQ(launch(write_bytes, 1, 1, 0, scores.data(), 0, 999), hipSuccess);
  if (cpu::sanitizer::kAddress) {
    EXPECT_DEATH(launch(write_bytes, 1, 1, 0, scores.data(), 0, 1000),
                 "use-after-poison");
    EXPECT_DEATH(launch(write_bytes, 1, 1, 0, scores.data(), -1, 0),
                 "use-after-poison");
    return;
  }
  expect_report(
      "write outside scores of 1000 bytes: first overwritten byte at offset "
      "1000",
      write_bytes, 1, 1, 0, scores.data(), 0, 1000);
  expect_report(
      "write outside scores of 1000 bytes: first overwritten byte at offset -3",
      write_bytes, 1, 1, 0, scores.data(), -3, -2);
  expect_report(
      "write outside scores of 1000 bytes: first overwritten byte at offset "
      "1255",
      write_bytes, 1, 1, 0, scores.data(), 1255, 1255);
}

TEST(Report, AllocationsWithoutANameAreCounted) {
  if (cpu::sanitizer::kAddress)
    GTEST_SKIP() << "AddressSanitizer ends the program at the write itself";
  DeviceArray<std::uint8_t> array(8);
  EXPECT_EQ(launch(write_bytes, 1, 1, 0, array.data(), 8, 8),
            hipErrorLaunchFailure);
  EXPECT_THAT(cpu::last_report(),
              MatchesRegex("write outside allocation [0-9]+ of 8 bytes: first "
                           "overwritten byte at offset 8"));
}

__global__ void write_lds(int first, int last, unsigned bad_block) {
  HIP_DYNAMIC_SHARED(std::uint8_t, lds)
  if (blockIdx.x == bad_block)
    for (int i = first; i <= last; ++i) lds[i] = 1;
}

TEST(Report, LdsOverflowByOne) {
  EXPECT_EQ(launch(write_lds, 4, 1, 100, 0, 99, 2u), hipSuccess);
  if (cpu::sanitizer::kAddress) {
    EXPECT_DEATH(launch(write_lds, 4, 1, 100, 0, 100, 2u), "use-after-poison");
    return;
  }
  expect_report(
      "write outside the LDS of block (2,0,0) of 100 bytes: first overwritten "
      "byte at offset 100",
      write_lds, 4, 1, 100, 0, 100, 2u);
  expect_report(
      "write outside the LDS of block (0,0,0) of 100 bytes: first overwritten "
      "byte at offset -1",
      write_lds, 4, 1, 100, -1, 0, 0u);
}

__global__ void copy_unwritten_lds(unsigned* out) {
  HIP_DYNAMIC_SHARED(unsigned, lds)
  out[blockIdx.x * blockDim.x + threadIdx.x] = lds[threadIdx.x];
}

TEST(Report, ReadOfUnwrittenLdsChangesWithTheFillSeed) {
  const auto seen = [](std::uint64_t seed) {
    cpu::Options options;
    options.seed = seed;
    const ScopedOptions scope(options);
    DeviceArray<unsigned> out(128);
    EXPECT_EQ(launch(copy_unwritten_lds, 2, 64, 64 * 4, out.data()),
              hipSuccess);
    return out.host();
  };
  const auto one = seen(1), two = seen(2);
  EXPECT_EQ(seen(1), one) << "a run is a function of its seed";
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NE(one[i], two[i]) << i;
  EXPECT_EQ(std::set<unsigned>(one.begin(), one.end()).size(), one.size())
      << "neighbours and blocks differ";
}

int deep(volatile int* depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(*depth);
  return *depth == 0 ? 0 : (*depth = *depth - 1, deep(depth) + frame[0]);
}

__global__ void overflow_the_stack(int* depth) { *depth = deep(depth); }

TEST(Report, AStackOverflowHitsTheGuardPage) {
  const std::vector<int> depth = {1000};
  DeviceArray<int> device_depth{std::span<const int>(depth)};
  EXPECT_DEATH(launch(overflow_the_stack, 1, 64, 0, device_depth.data()), "");
}

// ---- polls
// ----------------------------------------------------------------------------------------------------------

constexpr int kPoll = __LINE__;
__global__ void poll_for_nothing(std::uint64_t* pair, std::uint32_t* out) {
  if (threadIdx.x == 3) *out = pair_poll(pair, 1);
  __syncthreads();
}

TEST(Report, APollThatNobodyAnswers) {
  DeviceArray<std::uint64_t> pair(1);
  DeviceArray<std::uint32_t> out(1);
  expect_report(
      "deadlock of polls: no thread can go on, 64 have not exited, 1 poll at " +
          at(kPoll + 2) + " (the first is thread 3 of block (0,0,0))",
      poll_for_nothing, 1, 64, 0, pair.data(), out.data());
}

constexpr int kCross = __LINE__;
__global__ void wait_for_each_other(std::uint64_t* pairs,
                                    std::uint32_t* counter) {
  if (blockIdx.x == 0) {
    pair_poll(pairs, 1);
  } else {
    counter_wait_acquire(counter, 5);
  }
}

TEST(Report, PollsThatWaitForEachOtherAreAllNamed) {
  DeviceArray<std::uint64_t> pairs(1);
  DeviceArray<std::uint32_t> counter(1);
  EXPECT_EQ(launch_cooperative(wait_for_each_other, 2, 64, 0, pairs.data(),
                               counter.data()),
            hipErrorLaunchFailure);
  EXPECT_EQ(cpu::last_report(),
            "deadlock of polls: no thread can go on, 128 have not exited, 64 "
            "poll at " +
                at(kCross + 4) +
                " (the first is thread 0 of block (0,0,0)), 64 poll at " +
                at(kCross + 6) + " (the first is thread 0 of block (1,0,0))");
  expect_good_launch();
}

__global__ void wait_for_the_next_block(std::uint64_t* pair) {
  if (blockIdx.x == 0) {
    pair_poll(pair, 1);
  } else {
    pair_store(pair, 0, 1);
  }
}

TEST(Report, BlocksOfAnOrdinaryLaunchMayNotWaitForEachOther) {
  DeviceArray<std::uint64_t> pair(1);
  EXPECT_EQ(launch(wait_for_the_next_block, 2, 1, 0, pair.data()),
            hipErrorLaunchFailure);
  EXPECT_THAT(cpu::last_report(),
              MatchesRegex("deadlock of polls: no thread can go on, 1 have not "
                           "exited, 1 poll at .*"));
  EXPECT_EQ(launch_cooperative(wait_for_the_next_block, 2, 1, 0, pair.data()),
            hipSuccess);
}

// ---- the rest
// -------------------------------------------------------------------------------------------------------

__global__ void throw_in_thread_5() {
  if (threadIdx.x == 5) throw std::runtime_error("no such row");
  __syncthreads();
}

TEST(Report, AnException) {
  expect_report("exception in thread 5 of block (0,0,0): no such row",
                throw_in_thread_5, 1, 64, 0);
}

TEST(Report, ALaunchErrorStaysUntilItIsRead) {
  static_cast<void>(hipGetLastError());
  hipLaunchKernelGGL(throw_in_thread_5, 1, 64, 0, nullptr);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorLaunchFailure);
  expect_good_launch();  // reads and forgets it first
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

__global__ void half_fail_half_wait(std::uint64_t* pairs) {
  __syncthreads();
  if (blockIdx.x == 3 && threadIdx.x == 9) throw std::runtime_error("enough");
  if (threadIdx.x < 64) {
    ballot<64>(true);
    pair_poll(pairs, 1);
  }
  __syncthreads();
}

TEST(Report, ManyFailedLaunchesLeaveNothingBehind) {
  DeviceArray<std::uint64_t> pairs(1);
  const int rounds = cpu::sanitizer::kThread ? 5 : 50;  // slow to abandon there
  for (int i = 0; i < rounds; ++i) {
    ASSERT_EQ(
        launch_cooperative(half_fail_half_wait, 4, 128, 256, pairs.data()),
        hipErrorLaunchFailure);
    ASSERT_EQ(cpu::last_report(),
              "exception in thread 9 of block (3,0,0): enough");
  }
  expect_good_launch();
}

}  // namespace
}  // namespace exact_topk::hip::test
