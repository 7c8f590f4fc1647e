// SPDX-License-Identifier: Apache-2.0
//
// Groups and shared memory, run under mpirun with 4 ranks (and alone): every
// rank takes part in every test.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <cstring>

#include "harness/board.h"
#include "harness/case_queue.h"
#include "harness/group.h"

namespace exact_topk::harness {
namespace {

TEST(Group, CutsTheWorldIntoConsecutiveRanks) {
  const Group world = Group::world();
  const Group two = Group::of(2);
  const bool emulates = world.size() < 2;
  EXPECT_EQ(two.emulates(), emulates);
  EXPECT_EQ(two.size(), emulates ? 1 : 2);
  EXPECT_EQ(two.index(), emulates ? 0 : world.rank() / 2);
  EXPECT_EQ(two.rank(), emulates ? 0 : world.rank() % 2);
  EXPECT_EQ(two.count(), emulates ? 1 : world.size() / 2);
  const Group eight = Group::of(8);
  EXPECT_TRUE(eight.emulates());
  EXPECT_EQ(eight.size(), 1);
  EXPECT_EQ(eight.index(), world.rank());
}

TEST(Group, ExchangesTextsOfAnyLength) {
  const Group world = Group::world();
  const auto all =
      world.all_gather(std::string(static_cast<size_t>(world.rank()), 'x'));
  ASSERT_EQ(all.size(), static_cast<size_t>(world.size()));
  for (size_t r = 0; r < all.size(); ++r)
    EXPECT_EQ(all[r], std::string(r, 'x'));
  EXPECT_EQ(world.broadcast("from " + std::to_string(world.rank()), 0),
            "from 0");
}

TEST(Group, MaximumKeepsANan) {
  const Group world = Group::world();
  EXPECT_EQ(world.all_reduce_max(static_cast<double>(world.rank())),
            world.size() - 1);
  EXPECT_TRUE(
      std::isnan(world.all_reduce_max(world.rank() == 0 ? std::nan("") : 1.0)));
}

TEST(Group, AgreesOnEqualBitsAlone) {
  const Group world = Group::world();
  EXPECT_TRUE(world.agree(7));
  EXPECT_EQ(world.agree(world.rank() == 0 ? 7 : 8), world.size() == 1);
}

TEST(Group, SharesCoverAllItemsOnce) {
  const Group world = Group::world();
  const auto [begin, end] = world.share(10);
  EXPECT_EQ(world.all_reduce_sum(end - begin), 10);
  EXPECT_EQ(world.all_reduce_sum((begin + end - 1) * (end - begin) / 2),
            45);  // the sum of 0..9
}

TEST(SharedMemory, IsZeroedThenFilledByAllForAll) {
  const Group world = Group::world();
  const SharedMemory memory = make_shared(world, 1000 * sizeof(int32_t) + 64);
  EXPECT_EQ(memory.shared(), world.size() > 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.bytes().data()) % 64, 0u);
  for (const std::byte b : memory.bytes()) ASSERT_EQ(b, std::byte{0});
  memory.fence();
  int64_t written = 0;
  memory.fill(64, 1000, sizeof(int32_t),
              [&](int64_t begin, int64_t end, std::span<std::byte> out) {
                ASSERT_EQ(out.size(),
                          static_cast<size_t>(end - begin) * sizeof(int32_t));
                for (int64_t i = begin; i < end; ++i) {
                  const auto value = static_cast<int32_t>(i * 3);
                  std::memcpy(out.data() +
                                  static_cast<size_t>(i - begin) * sizeof value,
                              &value, sizeof value);
                }
                written = end - begin;
              });
  EXPECT_EQ(world.all_reduce_sum(written), 1000);
  for (int32_t i = 0; i < 1000; ++i) {
    int32_t value = 0;
    std::memcpy(
        &value,
        memory.bytes().data() + 64 + static_cast<size_t>(i) * sizeof value,
        sizeof value);
    ASSERT_EQ(value, i * 3);
  }
}

TEST(SharedInputs, MakesAKeyOnce) {
  SharedInputs inputs(Group::world());
  int calls = 0;
  const auto write = [&](int64_t, int64_t, std::span<std::byte> out) {
    ++calls;
    std::fill(out.begin(), out.end(), std::byte{9});
  };
  const auto first = inputs.get("a", 100, 1, write);
  const auto again = inputs.get("a", 100, 1, write);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(first.data(), again.data());
  EXPECT_EQ(first[99], std::byte{9});
}

TEST(Board, ShowsWhatAnotherRankPinned) {
  const Group world = Group::world();
  Board board(world, 3);
  CaseResult result;
  result.name = "a case";
  result.verdict = Outcome::kFailed;
  CaseResult large = result;
  large.checks.assign(1000, {"a check with a long name", Outcome::kPassed,
                             "and a reason", 1, 0});
  if (world.rank() == world.size() - 1) {
    board.pin(1, result);
    board.pin(2, large);
  }
  world.barrier();
  EXPECT_EQ(board.read(0), std::nullopt);
  EXPECT_EQ(board.read(1), result);
  EXPECT_EQ(board.read(2), result)
      << "too large for its place: pinned without its checks";
  world.barrier();
}

TEST(CaseQueue, HandsOutEveryCaseOnceLongestFirst) {
  const Group world = Group::world();
  std::vector<cases::Case> cases(5);
  for (size_t i = 0; i < cases.size(); ++i)
    cases[i].pos = static_cast<int64_t>(1000 * (i + 1));
  for (cases::Case& c : cases) c.tp = 1;
  const Group alone = Group::of(1);
  CaseQueue queue(cases);
  int64_t taken = 0, sum = 0, before = 5;
  while (const auto next = queue.next(0, alone)) {
    EXPECT_LT(*next, before);  // longest first
    before = *next;
    ++taken;
    sum += *next;
  }
  EXPECT_EQ(world.all_reduce_sum(taken), 5);
  EXPECT_EQ(world.all_reduce_sum(sum), 0 + 1 + 2 + 3 + 4);
  EXPECT_EQ(queue.taken(), 5);
}

TEST(CaseQueue, StopsForAll) {
  const Group world = Group::world();
  std::vector<cases::Case> cases(50);
  for (cases::Case& c : cases) c.tp = 1;
  CaseQueue queue(cases);
  if (world.rank() == 0) queue.stop();
  world.barrier();
  EXPECT_EQ(queue.next(0, Group::of(1)), std::nullopt);
}

}  // namespace
}  // namespace exact_topk::harness

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
