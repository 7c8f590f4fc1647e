// SPDX-License-Identifier: Apache-2.0
#include "harness/checks/list.h"

#include <gtest/gtest.h>

namespace exact_topk::harness {
namespace {

// 130 keys on pages 7, 2 and 9.
const std::vector<int32_t> kTable{7, 2, 9, 5};
constexpr int64_t kKeys = 130;

TEST(SlotMap, TakesSlotsBackToPositions) {
  const SlotMap slots(kTable, kKeys);
  for (int32_t position = 0; position < kKeys; ++position)
    EXPECT_EQ(slots.position(slots.slot(position)), position);
  EXPECT_EQ(slots.slot(0), 7 * 64);
  EXPECT_EQ(slots.slot(65), 2 * 64 + 1);
  EXPECT_EQ(slots.slot(129), 9 * 64 + 1);
}

TEST(SlotMap, KnowsWhatHoldsNoKeyOfTheRow) {
  const SlotMap slots(kTable, kKeys);
  // Past n on the last page, the pad page, a stale page of the table, another
  // page, negative, far away.
  for (const int32_t slot : {9 * 64 + 2, 3, 5 * 64, 8 * 64, -1, 1 << 30})
    EXPECT_EQ(slots.position(slot), -1) << slot;
  EXPECT_EQ(slots.outside(), 9 * 64 + 2);
  EXPECT_EQ(SlotMap(kTable, 128).outside(), 0);
  EXPECT_EQ(SlotMap(kTable, 128).position(0), -1);
}

TEST(SlotMap, WithoutATableIsTheIdentityOverTheRow) {
  const SlotMap slots({}, 5);
  EXPECT_EQ(slots.position(4), 4);
  EXPECT_EQ(slots.position(5), -1);
  EXPECT_EQ(slots.outside(), 5);
}

struct Judged {
  std::vector<std::string> failed;
  RowListVerdict verdict;
};

// Scores 0 .. 5 (position 2 ties with 4), k = 3: the base order is 1, then 2
// and 4 tie for the rest.
Judged judge(std::vector<int32_t> entries,
             oracle::Contract contract = oracle::Contract::kBase,
             std::vector<int32_t> before = {-9, -9, -9}) {
  const std::vector<float> scores{0, 5, 4, 1, 4, 4};
  const oracle::ListJudge judge(scores, 3);
  const SlotMap slots({}, 6);
  CheckLog log;
  Judged judged;
  judged.verdict = judge_row_list(judge, slots, {entries, before});
  record_list(log, {}, contract, judged.verdict, judge, slots,
              {entries, before});
  for (const CheckResult& check : log.results())
    if (check.outcome == Outcome::kFailed) judged.failed.push_back(check.name);
  return judged;
}
using Names = std::vector<std::string>;

TEST(List, OfTheBaseOrderHolds) { EXPECT_EQ(judge({1, 2, 4}).failed, Names{}); }

TEST(List, VerdictsAreSeparate) {
  EXPECT_EQ(judge({2, 1, 4}).failed, (Names{"order"}));
  EXPECT_EQ(judge({1, 2, 5}).failed, (Names{"set", "ties", "order"}));
  EXPECT_EQ(judge({3, 2, 4}).failed, (Names{"set", "order"}));
  EXPECT_EQ(judge({1, 2, 2}).failed,
            (Names{"duplicates", "set", "ties", "order"}));
  EXPECT_EQ(judge({1, 2, 6}).failed, (Names{"range", "set", "ties", "order"}));
  EXPECT_EQ(judge({1, 2, -9}).failed,
            (Names{"count", "range", "set", "ties", "order"}));
}

TEST(List, AnEntryThatBelongsThereWasWrittenWhateverWasThereBefore) {
  EXPECT_EQ(judge({1, 2, 4}, oracle::Contract::kBase, {1, 2, 4}).failed,
            Names{});
}

TEST(List, IsHeldToWhatTheContractPromises) {
  EXPECT_EQ(judge({4, 2, 1}, oracle::Contract::kSet).failed, Names{});
  EXPECT_EQ(judge({4, 2, 1}, oracle::Contract::kPosition).failed,
            Names{"order"});
  EXPECT_EQ(judge({5, 2, 1}, oracle::Contract::kValues).failed, Names{});
  EXPECT_EQ(judge({0, 2, 1}, oracle::Contract::kValues).failed,
            Names{"values"});
  EXPECT_EQ(judge({0, 3, 5}, oracle::Contract::kValid).failed, Names{});
  EXPECT_EQ(judge({0, 0, 5}, oracle::Contract::kValid).failed,
            Names{"duplicates"});
}

}  // namespace
}  // namespace exact_topk::harness
