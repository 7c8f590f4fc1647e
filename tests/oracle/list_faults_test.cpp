// SPDX-License-Identifier: Apache-2.0
#include "oracle/list_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace exact_topk::oracle {
namespace {

using testing::HasSubstr;

// Positions 1 (9) and 3 (5) are the top 2; 4 ties with 3, 2 and 0 are below.
const std::vector<float> kScores{1, 9, 2, 5, 5};

struct Found {
  FaultyEntry entry;
  std::string sentence;
};

Found find(const std::vector<std::int32_t>& positions, Contract contract,
           const std::vector<float>& scores = kScores) {
  const ListJudge judge(scores, 2);
  const ListVerdict verdict = judge.judge(positions);
  const std::vector<std::int64_t> entries(positions.begin(), positions.end());
  const NamedList list{judge, verdict, contract, positions, entries};
  return {first_faulty_entry(list, scores, {}),
          first_sentence(list_faults(list), contract)};
}

struct Case {
  std::vector<std::int32_t> positions;
  Contract contract;
  std::int64_t index;
  std::int32_t position;
  const char* sentence;  // part of it
};

TEST(ListFaults, TheFirstEntryThatBreaksTheContractIsNamed) {
  using enum Contract;
  for (const Case& c : std::vector<Case>{
           {{1, 3, -1}, kSet, -1, -1, ""},
           {{1}, kValid, 1, -1, "the list has 1 entries, and the row takes 2"},
           {{1, 3, 0}, kValid, 2, 0, "entry 2 is 0, past the 2"},
           {{1, 3, -2}, kValid, 2, -1, "entry 2 is -2, past the 2"},
           {{-1, 3}, kValid, 0, -1, "entry 0 is -1, which names no key"},
           {{1, 5}, kValid, 1, -1, "entry 1 is 5, which names no key"},
           {{1, 1}, kValid, 1, 1, "1 entries repeat a key"},
           {{0, 2}, kValid, -1, -1, ""},
           {{4, 1}, kValues, -1, -1, ""},
           {{4, 2}, kValues, 1, 2, "1 keys above the k-th and 1 that equal it"},
           {{3, 4}, kValues, 1, 4, "1 keys above the k-th and 0 that equal it"},
           {{1, 0}, kValues, 1, 0, "0 keys above the k-th and 1 that equal it"},
           {{1, 4}, kSet, 1, 4, "1 keys of the exact top k are missed"},
           {{3, 1}, kSet, -1, -1, ""},
           {{3, 1}, kPosition, 1, 1, "promised order: position"},
           {{1, 3}, kPosition, -1, -1, ""},
           {{3, 1}, kSorted, 1, 1, "promised order: sorted"},
           {{1, 3}, kSorted, -1, -1, ""},
           {{3, 1}, kBase, 0, 3, "entry 0 is 3 (position 3), the base order"},
           {{4, 1}, kBase, 0, 4, "1 keys of the exact top k are missed"},
           {{1, 4}, kPosition, 1, 4, "1 keys of the exact top k are missed"},
       }) {
    const Found found = find(c.positions, c.contract);
    EXPECT_EQ(found.entry.index, c.index) << found.sentence;
    EXPECT_EQ(found.entry.position, c.position) << found.sentence;
    EXPECT_THAT(found.sentence, HasSubstr(c.sentence));
    EXPECT_EQ(found.sentence.empty(), c.index < 0) << found.sentence;
  }
}

// Sorted: equal values come by position.
TEST(ListFaults, SortedTiesGoByPosition) {
  const std::vector<float> scores{7, 7, 1};
  EXPECT_EQ(find({0, 1}, Contract::kSorted, scores).entry.index, -1);
  EXPECT_EQ(find({1, 0}, Contract::kSorted, scores).entry.index, 1);
}

}  // namespace
}  // namespace exact_topk::oracle
