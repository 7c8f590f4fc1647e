// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/kernels/hip/device.h"

namespace exact_topk::hip::test {
namespace {

std::vector<std::byte> fresh(std::size_t bytes, std::uint64_t seed) {
  cpu::Options options;
  options.seed = seed;
  const ScopedOptions scope(options);
  std::byte* memory = nullptr;
  EXPECT_EQ(hipMalloc(&memory, bytes), hipSuccess);
  std::vector<std::byte> copy(memory, memory + bytes);
  EXPECT_EQ(hipFree(memory), hipSuccess);
  return copy;
}

TEST(Memory, FreshMemoryHoldsAPatternOfItsSeed) {
  const auto first = fresh(1003, 1);
  EXPECT_EQ(fresh(1003, 1), first);
  const auto second = fresh(1003, 2);
  std::size_t equal_words = 0;
  for (std::size_t i = 0; i + 4 <= first.size(); i += 4)
    equal_words += std::memcmp(&first[i], &second[i], 4) == 0;
  EXPECT_EQ(equal_words, 0u);
  EXPECT_NE(std::memcmp(&first[0], &first[4], 4), 0);
}

TEST(Memory, AllocationsAreAlignedForVectors) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{255},
                                  std::size_t{256}, std::size_t{4097}}) {
    void* memory = nullptr;
    ASSERT_EQ(hipMalloc(&memory, bytes), hipSuccess);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
    EXPECT_EQ(hipFree(memory), hipSuccess);
  }
}

TEST(Memory, NoMemoryIsAnError) {
  void* memory = nullptr;
  EXPECT_EQ(hipMalloc(&memory, SIZE_MAX - 100), hipErrorOutOfMemory);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(hipGetLastError(), hipErrorOutOfMemory);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST(Memory, CopiesStayWithinTheirAllocation) {
  DeviceArray<std::uint8_t> array(100);
  const std::array<std::uint8_t, 200> host = {};
  EXPECT_EQ(
      hipMemcpy(array.data() + 60, host.data(), 40, hipMemcpyHostToDevice),
      hipSuccess);
  EXPECT_EQ(
      hipMemcpy(array.data() + 60, host.data(), 41, hipMemcpyHostToDevice),
      hipErrorInvalidValue);
  EXPECT_EQ(hipMemset(array.data(), 0, 101), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset(array.data() + 100, 0, 1), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, host.data(), 1, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  static_cast<void>(hipGetLastError());
}

TEST(Memory, FreeingWhatIsNotAllocatedIsAnError) {
  int on_host = 0;
  EXPECT_EQ(hipFree(&on_host), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  static_cast<void>(hipGetLastError());
}

TEST(Memory, AGuardDamagedOutsideALaunchIsReportedWhenFreed) {
  if (cpu::sanitizer::kAddress)
    GTEST_SKIP() << "AddressSanitizer ends the program at the write itself";
  std::uint8_t* memory = nullptr;
  ASSERT_EQ(hipMalloc(&memory, 10), hipSuccess);
  cpu::name_allocation(memory, "list");
  memory[-1] = 0;
  EXPECT_EQ(hipFree(memory), hipErrorLaunchFailure);
  EXPECT_EQ(
      cpu::last_report(),
      "write outside list of 10 bytes: first overwritten byte at offset -1");
  static_cast<void>(hipGetLastError());
}

}  // namespace
}  // namespace exact_topk::hip::test
