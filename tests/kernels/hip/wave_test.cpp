// SPDX-License-Identifier: Apache-2.0
// Every collective at both wave sizes against values worked out plainly, on two
// waves and a partial one.
#include "kernels/hip/wave.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

// What one thread of the block offers and sees.
struct Seen {
  int lane, wave;
  std::uint32_t shuffled, reversed, crossed, raised;
  std::uint64_t votes;
  int some, none, every, not_every, rank;
  float sum;
  float most;
  std::uint32_t inclusive, exclusive;
};

__host__ __device__ inline std::uint32_t offered(unsigned thread) {
  return (thread + 1) * 2654435761u;
}
__host__ __device__ inline bool votes_yes(unsigned thread) {
  return (offered(thread) >> 20) % 3 == 0;
}
// Magnitudes so far apart that the order of a sum shows in its bits.
__host__ __device__ inline float addend(unsigned thread) {
  const std::uint32_t bits = offered(thread);
  return __uint_as_float((bits & 0x007FFFFFu) | ((120 + (bits >> 28)) << 23) |
                         (thread % 2) << 31);
}

template <int Wave>
__global__ void collect(Seen* out) {
  const unsigned t = threadIdx.x;
  Seen seen = {};
  seen.lane = lane<Wave>();
  seen.wave = wave<Wave>();
  seen.shuffled = shuffle<Wave>(offered(t), 5);
  seen.reversed = shuffle<Wave>(offered(t), Wave - 1 - seen.lane);
  seen.crossed = shuffle_xor<Wave>(offered(t), 9);
  seen.raised = shuffle_up<Wave>(offered(t), 3);
  seen.votes = ballot<Wave>(votes_yes(t));
  seen.some = any<Wave>(seen.lane == 17);
  seen.none = any<Wave>(false);
  seen.every = all<Wave>(true);
  seen.not_every = all<Wave>(seen.lane != Wave - 1);
  seen.rank = rank_in_ballot<Wave>(seen.votes);
  seen.sum = wave_sum<Wave>(addend(t));
  seen.most = wave_max<Wave>(addend(t));
  seen.inclusive = wave_inclusive_scan<Wave>(offered(t));
  seen.exclusive = wave_exclusive_scan<Wave>(offered(t));
  out[t] = seen;
}

// The definition: each lane adds the lane at distance d, for d = Wave/2 .. 1.
template <int Wave>
float butterfly_sum(unsigned first, int lane_index, int distance) {
  if (distance == Wave)
    return addend(first + static_cast<unsigned>(lane_index));
  return butterfly_sum<Wave>(first, lane_index, 2 * distance) +
         butterfly_sum<Wave>(first, lane_index ^ distance, 2 * distance);
}

template <int Wave>
void check_collectives() {
  constexpr unsigned kWaves = 3;
  for (const auto& schedule : schedules()) {
    auto options = with_wave(Wave);
    options.schedule = schedule;
    const ScopedOptions scope(options);
    DeviceArray<Seen> out(kWaves * Wave);
    ASSERT_EQ(launch(collect<Wave>, 1, kWaves * Wave, 0, out.data()),
              hipSuccess)
        << cpu::last_report();
    const auto host = out.host();
    for (unsigned w = 0; w < kWaves; ++w) {
      const unsigned first = w * Wave;
      std::uint64_t votes = 0;
      float most = addend(first);
      for (unsigned l = 0; l < Wave; ++l) {
        votes |= std::uint64_t{votes_yes(first + l)} << l;
        most = std::max(most, addend(first + l));
      }
      std::uint32_t running = 0;
      int yes_below = 0;
      for (unsigned l = 0; l < Wave; ++l) {
        const Seen& seen = host[first + l];
        EXPECT_EQ(seen.lane, static_cast<int>(l));
        EXPECT_EQ(seen.wave, static_cast<int>(w));
        EXPECT_EQ(seen.shuffled, offered(first + 5));
        EXPECT_EQ(seen.reversed, offered(first + Wave - 1 - l));
        EXPECT_EQ(seen.crossed, offered(first + (l ^ 9)));
        EXPECT_EQ(seen.raised, offered(first + (l < 3 ? l : l - 3)));
        EXPECT_EQ(seen.votes, votes);
        EXPECT_EQ(seen.some, 1);
        EXPECT_EQ(seen.none, 0);
        EXPECT_EQ(seen.every, 1);
        EXPECT_EQ(seen.not_every, 0);
        EXPECT_EQ(seen.rank, yes_below);
        EXPECT_EQ(seen.most, most);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(seen.sum),
                  std::bit_cast<std::uint32_t>(
                      butterfly_sum<Wave>(first, static_cast<int>(l), 1)));
        EXPECT_EQ(seen.exclusive, running);
        running += offered(first + l);
        EXPECT_EQ(seen.inclusive, running);
        yes_below += votes_yes(first + l);
      }
    }
  }
}

TEST(Wave, CollectivesOf64Lanes) { check_collectives<64>(); }
TEST(Wave, CollectivesOf32Lanes) { check_collectives<32>(); }

TEST(Wave, TheSumTestTellsOrdersApart) {
  float ascending = 0;
  for (unsigned l = 0; l < 64; ++l) ascending += addend(l);
  EXPECT_NE(ascending, butterfly_sum<64>(0, 0, 1));
}

// ---- HIP's own names
// --------------------------------------------------------------------------------------------------

struct HipSeen {
  int from, up, down, crossed, grouped, group_up;
  std::uint64_t votes;
  int some, every, size;
};

__global__ void hip_collect(HipSeen* out) {
  const int t = static_cast<int>(threadIdx.x);
  HipSeen seen = {};
  seen.from = __shfl(t, 7);
  seen.up = __shfl_up(t, 2);
  seen.down = __shfl_down(t, 2);
  seen.crossed = __shfl_xor(t, 1);
  seen.grouped = __shfl(t, 3, 8);
  seen.group_up = __shfl_up(t, 1, 8);
  seen.votes = __ballot(t % 5 == 0);
  seen.some = __any(t % 64 == 63);
  seen.every = __all(t % 64 != 63);
  seen.size = warpSize;
  out[t] = seen;
}

void check_hip_names(int wave_size) {
  const ScopedOptions scope(with_wave(wave_size));
  DeviceArray<HipSeen> out(128);
  ASSERT_EQ(launch(hip_collect, 1, 128, 0, out.data()), hipSuccess)
      << cpu::last_report();
  const auto host = out.host();
  for (int t = 0; t < 128; ++t) {
    const HipSeen& seen = host[static_cast<std::size_t>(t)];
    const int first = t / wave_size * wave_size, last = first + wave_size - 1;
    EXPECT_EQ(seen.from, first + 7);
    EXPECT_EQ(seen.up, t - 2 < first ? t : t - 2);
    EXPECT_EQ(seen.down, t + 2 > last ? t : t + 2);
    EXPECT_EQ(seen.crossed, t ^ 1);
    EXPECT_EQ(seen.grouped, t / 8 * 8 + 3);
    EXPECT_EQ(seen.group_up, t % 8 == 0 ? t : t - 1);
    std::uint64_t votes = 0;
    for (int l = 0; l < wave_size; ++l)
      votes |= std::uint64_t{(first + l) % 5 == 0} << l;
    EXPECT_EQ(seen.votes, votes);
    const bool has_63 = first / 64 * 64 + 63 <= last;
    EXPECT_EQ(seen.some, has_63);
    EXPECT_EQ(seen.every, !has_63);
    EXPECT_EQ(seen.size, wave_size);
  }
}

TEST(Wave, HipNamesAt64) { check_hip_names(64); }
TEST(Wave, HipNamesAt32) { check_hip_names(32); }

// ---- masks, exits and partial waves
// -----------------------------------------------------------------------------------

// Even and odd lanes vote on their own, several times, while the others are
// elsewhere.
__global__ void masked_votes(std::uint64_t* out) {
  const int t = static_cast<int>(threadIdx.x);
  constexpr std::uint64_t kEven = 0x5555555555555555u;
  if (t % 2 == 0) {
    out[t] = __ballot_sync(kEven, t < 8);
    out[t] += __shfl_xor_sync(kEven, std::uint64_t{1} << 40, 2);
  } else {
    out[t] = __ballot_sync(~kEven, t > 60);
  }
}

TEST(Wave, MasksMeetApart) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<std::uint64_t> out(64);
    ASSERT_EQ(launch(masked_votes, 1, 64, 0, out.data()), hipSuccess)
        << cpu::last_report();
    const auto host = out.host();
    for (std::size_t t = 0; t < 64; ++t)
      EXPECT_EQ(host[t], t % 2 == 0 ? 0x55u + (std::uint64_t{1} << 40)
                                    : std::uint64_t{0xA} << 60)
          << t;
  }
}

// A lane that has exited takes no part; the others need not wait for it,
// whoever comes first.
__global__ void votes_of_the_living(std::uint64_t* out, int* every) {
  const int t = static_cast<int>(threadIdx.x);
  if (t % 64 >= 50) return;
  out[t] = ballot<64>(true);
  every[t] = all<64>(true);
}

TEST(Wave, ExitedAndMissingLanesDoNotVote) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<std::uint64_t> out(70);
    DeviceArray<int> every(70);
    ASSERT_EQ(launch(votes_of_the_living, 1, 70, 0, out.data(), every.data()),
              hipSuccess)
        << cpu::last_report();
    EXPECT_EQ(out.host()[0], (std::uint64_t{1} << 50) - 1);
    EXPECT_EQ(out.host()[69], 0x3Fu);
    EXPECT_EQ(every.host()[0], 1);
    EXPECT_EQ(every.host()[69], 1);
  }
}

}  // namespace
}  // namespace exact_topk::hip::test
