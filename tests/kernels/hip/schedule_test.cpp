// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "kernels/hip/atomics.h"
#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

using testing::Each;
using testing::ElementsAreArray;
using testing::Not;

std::string error_of(const std::string& spec) {
  try {
    static_cast<void>(cpu::parse_schedule(spec));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Schedule, BadSpecsAreRefusedWithOneSentence) {
  EXPECT_EQ(error_of("fifo"),
            "schedule 'fifo' is none of round-robin, reverse, random:SEED");
  EXPECT_EQ(error_of(""),
            "schedule '' is none of round-robin, reverse, random:SEED");
  EXPECT_EQ(error_of("random"),
            "schedule 'random' is none of round-robin, reverse, random:SEED");
  for (const std::string spec :
       {"random:", "random:x", "random:1x", "random:-1", "random: 1",
        "random:18446744073709551616"})
    EXPECT_EQ(error_of(spec),
              "schedule '" + spec +
                  "' needs a decimal seed of 64 bits after random:");
  for (const auto& spec : schedules()) EXPECT_EQ(error_of(spec), "accepted");
}

TEST(Schedule, OptionsOutOfRangeAreRefusedAndNotTaken) {
  const auto refused = [](auto change) {
    cpu::Options options;
    change(options);
    const int wave_before = cpu::options().wave_size;
    EXPECT_THROW(cpu::set_options(options), std::invalid_argument);
    EXPECT_EQ(cpu::options().wave_size, wave_before);
  };
  refused([](auto& o) { o.wave_size = 16; });
  refused([](auto& o) { o.schedule = "none"; });
  refused([](auto& o) { o.stack_bytes = 1024; });
  refused([](auto& o) { o.compute_units = 0; });
}

TEST(Schedule, BlockOrderIsAPermutation) {
  std::vector<std::uint32_t> ascending(257);
  std::iota(ascending.begin(), ascending.end(), 0u);
  EXPECT_EQ(cpu::parse_schedule("round-robin")->block_order(257), ascending);
  auto random = cpu::parse_schedule("random:7")->block_order(257);
  EXPECT_NE(random, ascending);
  EXPECT_EQ(cpu::parse_schedule("random:7")->block_order(257), random);
  EXPECT_NE(cpu::parse_schedule("random:8")->block_order(257), random);
  std::sort(random.begin(), random.end());
  EXPECT_EQ(random, ascending);
  std::reverse(ascending.begin(), ascending.end());
  EXPECT_EQ(cpu::parse_schedule("reverse")->block_order(257), ascending);
}

// Writes down who comes when, before and after a barrier.
__global__ void arrival_order(unsigned* counter, unsigned* order) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  order[atomicAdd(counter, 1)] = thread;
  __syncthreads();
  order[atomicAdd(counter, 1)] = thread;
}

std::vector<unsigned> arrivals(const std::string& schedule) {
  const ScopedOptions scope(with_schedule(schedule));
  DeviceArray<unsigned> counter(1), order(2 * 128);
  EXPECT_EQ(
      launch_cooperative(arrival_order, 2, 64, 0, counter.data(), order.data()),
      hipSuccess);
  return order.host();
}

TEST(Schedule, OrdersAreThoseNamed) {
  std::vector<unsigned> ascending(128);
  std::iota(ascending.begin(), ascending.end(), 0u);
  const auto forward = arrivals("round-robin");
  EXPECT_THAT(std::vector(forward.begin(), forward.begin() + 128),
              ElementsAreArray(ascending));
  EXPECT_THAT(std::vector(forward.begin() + 128, forward.end()),
              ElementsAreArray(ascending));
  const auto backward = arrivals("reverse");
  EXPECT_THAT(std::vector(backward.rbegin(), backward.rbegin() + 128),
              ElementsAreArray(ascending));
}

TEST(Schedule, RandomIsAFunctionOfItsSeedAlone) {
  const auto first = arrivals("random:5");
  static_cast<void>(arrivals("random:6"));
  EXPECT_EQ(arrivals("random:5"), first);
  EXPECT_NE(arrivals("random:6"), first);
  EXPECT_NE(arrivals("round-robin"), first);
  std::vector<unsigned> visits(128);
  for (const unsigned thread : first) ++visits[thread];
  EXPECT_THAT(visits, Each(2u));
}

}  // namespace
}  // namespace exact_topk::hip::test
