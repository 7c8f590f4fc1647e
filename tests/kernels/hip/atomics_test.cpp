// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/atomics.h"

#include <gtest/gtest.h>

#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

template <class T>
struct Results {
  T added, most, least, bits_on, bits_kept, claimed, exchanged, subtracted;
};

// Every thread takes part in each atomic; LDS first, then the sums go to global
// memory.
template <class T>
__global__ void all_atomics(Results<T>* out) {
  HIP_DYNAMIC_SHARED(Results<T>, lds)
  const T t = static_cast<T>(threadIdx.x);
  if (threadIdx.x == 0)
    *lds = {0,
            50,
            50,
            0,
            static_cast<T>(0xFF),
            static_cast<T>(1000),
            0,
            static_cast<T>(200)};
  __syncthreads();
  atomicAdd(&lds->added, t);
  atomicMax(&lds->most, t);
  atomicMin(&lds->least, t);
  atomicOr(&lds->bits_on, static_cast<T>(1) << (threadIdx.x % 20));
  atomicAnd(&lds->bits_kept, static_cast<T>(~(T{1} << (threadIdx.x % 4))));
  atomicSub(&lds->subtracted, T{1});
  if (atomicCAS(&lds->claimed, static_cast<T>(1000), static_cast<T>(7)) ==
      static_cast<T>(1000))
    atomicAdd(
        &lds->exchanged,
        atomicExch(&lds->claimed, static_cast<T>(8)));  // one thread alone: 7
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&out->added, lds->added);
    atomicMax(&out->most, lds->most);
    out->least = lds->least;
    out->bits_on = lds->bits_on;
    out->bits_kept = lds->bits_kept;
    out->claimed = lds->claimed;
    out->exchanged = lds->exchanged;
    out->subtracted = lds->subtracted;
  }
}

template <class T>
void check_atomics() {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<Results<T>> out(1);
    ASSERT_EQ(launch(all_atomics<T>, 1, 128, sizeof(Results<T>), out.data()),
              hipSuccess)
        << cpu::last_report();
    const auto result = out.host()[0];
    EXPECT_EQ(result.added, static_cast<T>(127 * 128 / 2));
    EXPECT_EQ(result.most, static_cast<T>(127));
    EXPECT_EQ(result.least, static_cast<T>(0));
    EXPECT_EQ(result.bits_on, static_cast<T>(0xFFFFF));
    EXPECT_EQ(result.bits_kept, static_cast<T>(0xF0));
    EXPECT_EQ(result.claimed, static_cast<T>(8));
    EXPECT_EQ(result.exchanged, static_cast<T>(7));
    EXPECT_EQ(result.subtracted, static_cast<T>(72));
  }
}

TEST(Atomics, Int) { check_atomics<int>(); }
TEST(Atomics, Unsigned) { check_atomics<unsigned>(); }
TEST(Atomics, UnsignedLongLong) { check_atomics<unsigned long long>(); }

__global__ void signed_extremes(int* most, int* least) {
  const int value = static_cast<int>(threadIdx.x) - 32;
  atomicMax(most, value);
  atomicMin(least, value);
}

TEST(Atomics, IntComparesSigned) {
  DeviceArray<int> most(1), least(1);
  ASSERT_EQ(launch(signed_extremes, 1, 64, 0, most.data(), least.data()),
            hipSuccess);
  EXPECT_EQ(most.host()[0], 31);
  EXPECT_EQ(least.host()[0], -32);
}

// Only the tag decides: a payload equal to the tag, or an older tag, is no
// answer.
__global__ void answer_late(std::uint64_t* pair, std::uint32_t* out) {
  if (blockIdx.x == 0) {
    out[0] = pair_poll(pair, 9);
  } else {
    pair_store(pair, 9, 8);
    out[1] = pair_ready(pair, 9);
    out[2] = pair_poll(pair, 8);
    pair_store(pair, 0xDEADBEEF, 9);
  }
}

TEST(Atomics, PairsAreToldByTheirTag) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<std::uint64_t> pair(1);
    DeviceArray<std::uint32_t> out(3);
    ASSERT_EQ(launch_cooperative(answer_late, 2, 1, 0, pair.data(), out.data()),
              hipSuccess)
        << cpu::last_report();
    EXPECT_EQ(out.host(), (std::vector<std::uint32_t>{0xDEADBEEF, 0, 9}))
        << schedule;
    EXPECT_EQ(pair.host()[0], 0x00000009DEADBEEFull);
  }
}

// Plain stores before the release are read after the acquire; ThreadSanitizer
// builds hold this to it.
__global__ void gather(unsigned* values, std::uint32_t* counter,
                       unsigned* sum) {
  if (blockIdx.x != 0) {
    values[blockIdx.x] = blockIdx.x * 10;
    counter_add_release(counter, 1);
    return;
  }
  counter_wait_acquire(counter,
                       gridDim.x - 2);  // counted from 2^32 - 1, over zero
  *sum = 0;
  for (unsigned b = 1; b < gridDim.x; ++b) *sum += values[b];
}

TEST(Atomics, CountersOrderMemoryAndWrap) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<unsigned> values(16), sum(1);
    const std::vector<std::uint32_t> start = {
        ~std::uint32_t{0}};  // 15 additions end at 14
    const DeviceArray<std::uint32_t> counter{
        std::span<const std::uint32_t>(start)};
    ASSERT_EQ(launch_cooperative(gather, 16, 1, 0, values.data(),
                                 counter.data(), sum.data()),
              hipSuccess)
        << cpu::last_report();
    EXPECT_EQ(sum.host()[0], 10u * 15 * 16 / 2) << schedule;
  }
}

// One thread stores for later and tells the other block, which then looks.
__global__ void look_for_a_late_store(uint32_t* late, uint64_t* told,
                                      uint32_t* seen) {
  if (blockIdx.x == 0) {
    store_for_later(late, 7);
    pair_store_release(told, 0, 1);
  } else {
    pair_wait_acquire(told, 1);
    *seen = detail::load_relaxed(late);
  }
}

TEST(Atomics, AStoreForLaterShowsWhenTheLaunchEnds) {
  for (const auto& schedule : schedules()) {
    const ScopedOptions scope(with_schedule(schedule));
    DeviceArray<uint32_t> late(1), seen(1);
    DeviceArray<uint64_t> told(1);
    EXPECT_EQ(hipMemset(seen.data(), 1, sizeof(uint32_t)), hipSuccess);
    ASSERT_EQ(launch_cooperative(look_for_a_late_store, 2, 1, 0, late.data(),
                                 told.data(), seen.data()),
              hipSuccess)
        << cpu::last_report();
    EXPECT_EQ(seen.host()[0], 0u) << schedule;
    EXPECT_EQ(late.host()[0], 7u) << schedule;
  }
}

}  // namespace
}  // namespace exact_topk::hip::test
