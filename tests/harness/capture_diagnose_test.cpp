// SPDX-License-Identifier: Apache-2.0
//
// Every lead by the fault that it is a lead for, and the facts around it. Lists
// are what a kernel with that fault would write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "harness/diagnose.h"
#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

using oracle::Contract;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr int kK = 2048;

std::vector<float> normal_row(int n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> scores(static_cast<size_t>(n));
  for (float& s : scores) s = normal(random);
  return scores;
}

std::vector<std::string> diagnose(const std::vector<float>& scores,
                                  const std::vector<int32_t>& list,
                                  Contract contract = Contract::kSet) {
  return diagnose_list({scores, kK, contract, {}, list, {}});
}

testing::Matcher<std::vector<std::string>> leads_to(const std::string& text) {
  return Contains(AllOf(HasSubstr("lead: "), HasSubstr(text)));
}
// The leads that a diagnosis gives.
std::vector<std::string> leads(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const std::string& line : lines)
    if (line.starts_with("lead: ")) out.push_back(line);
  return out;
}

TEST(Diagnose, TellsTheCutAndTheKeys) {
  std::vector<float> scores(5000);
  std::iota(scores.begin(), scores.end(), 1.0f);  // the k-th is 2953
  std::vector<int32_t> list(kK);
  std::iota(list.begin(), list.end(), 5000 - kK);
  list[48] = 17;  // for position 3000
  const std::vector<std::string> lines = diagnose(scores, list);
  EXPECT_EQ(lines[0],
            "n 5000, k 2048: the least selected score is 2953 (0x45389000), "
            "radix key 0xc5389000; 1 key has it in the row, 1 selected; the "
            "base order stops at 12 bits");
  EXPECT_EQ(lines[1],
            "1 missing: position 3000 score 3001 (0x453b9000) rank 2000");
  EXPECT_EQ(lines[2], "1 extra: position 17 score 18 (0x41900000) rank 4983");
  EXPECT_TRUE(leads(lines).empty());
}

TEST(Diagnose, TellsWhereEachOrderLeaves) {
  std::vector<float> scores(5000);
  std::iota(scores.begin(), scores.end(), 1.0f);
  std::vector<int32_t> rising(kK), falling;
  std::iota(rising.begin(), rising.end(), 5000 - kK);
  falling.assign(rising.rbegin(), rising.rend());
  std::swap(rising[9], rising[10]);
  EXPECT_THAT(
      diagnose(scores, rising, Contract::kPosition),
      Contains(HasSubstr("the order leaves at entry 10: position 2961 "
                         "score 2962 (0x45392000), after position 2962")));
  std::swap(falling[4], falling[5]);
  EXPECT_THAT(
      diagnose(scores, falling, Contract::kSorted),
      Contains(HasSubstr("the order leaves at entry 5: position 4995")));
  std::vector<int32_t> base = oracle::base_order(scores, kK).positions;
  std::swap(base[100], base[2000]);
  EXPECT_THAT(
      diagnose(scores, base, Contract::kBase),
      Contains(AllOf(HasSubstr("the order leaves at entry 100: position"),
                     HasSubstr("must be position"))));
}

TEST(Diagnose, LeadsToTiesBrokenByArrival) {
  std::vector<float> scores(5000, 0.0f);
  std::fill_n(scores.begin() + 100, 100, 1.0f);
  std::vector<int32_t> list(100);
  std::iota(list.begin(), list.end(), 100);
  for (int32_t p = 4999; list.size() < size_t{kK}; --p) list.push_back(p);
  EXPECT_THAT(leads(diagnose(scores, list)),
              testing::ElementsAre(
                  AllOf(HasSubstr("ties not broken by the lowest position"),
                        HasSubstr("first missing position 0"))));
}

TEST(Diagnose, LeadsToOtherRulesOfValues) {
  std::vector<float> scores = normal_row(5000);
  scores[7] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> without = scores;
  without[7] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      leads(diagnose(scores, oracle::exact_top_k(without, kK))),
      testing::ElementsAre(HasSubstr(
          "the row has 1 NaN, and with --nan last the list holds set")));

  std::vector<float> zeros(5000, -0.0f);
  std::fill(zeros.begin() + 4000, zeros.end(), 0.0f);
  std::vector<int32_t> first(kK);
  std::iota(first.begin(), first.end(), 0);
  EXPECT_THAT(leads(diagnose(zeros, first)),
              testing::ElementsAre(HasSubstr("with --zeros equal")));
}

// SGLang's fault: keys of the coarse fp16 bin that holds the k-th go to a
// buffer of 4,096, in order of arrival, and what does not fit is lost.
TEST(Diagnose, LeadsToADroppedBuffer) {
  constexpr int kRoom = 4096, kExtra = 37;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> in_bin(1.0f, 1.245f);
  std::vector<float> scores(static_cast<size_t>(kRoom + kExtra));
  for (float& s : scores) s = in_bin(random);
  scores.insert(scores.end(), 3000, -1.0f);
  std::vector<float> kept = scores;
  std::fill(kept.begin() + kRoom, kept.end(), -2.0f);
  const std::vector<int32_t> list = oracle::exact_top_k(kept, kK);
  const std::vector<std::string> lines = diagnose(scores, list);
  EXPECT_THAT(leads(lines),
              testing::ElementsAre(AllOf(
                  HasSubstr("a dropped buffer"), HasSubstr("of its 4133 keys"),
                  HasSubstr("as a buffer of 4096 entries"))));
  // Without an overflow the list is right, and there is nothing to lead to.
  EXPECT_TRUE(leads(diagnose(scores, oracle::exact_top_k(scores, kK))).empty());
}

TEST(Diagnose, LeadsToOneSlice) {
  const std::vector<float> scores = normal_row(32768);
  std::vector<float> kept = scores;
  std::fill(kept.begin() + 4096, kept.begin() + 6144, -100.0f);
  const std::vector<int32_t> list = oracle::exact_top_k(kept, kK);
  EXPECT_THAT(diagnose(scores, list), leads_to("one slice: all "));
  // As many keys missing all over the row are no slice.
  std::vector<int32_t> scattered = oracle::exact_top_k(scores, kK);
  std::vector<bool> winner(scores.size());
  for (const int32_t p : scattered) winner[size_t(p)] = true;
  int32_t loser = 0;
  for (size_t i = 0; i < scattered.size(); i += 16) {
    while (winner[size_t(loser)]) ++loser;
    scattered[i] = loser++;
  }
  EXPECT_TRUE(leads(diagnose(scores, scattered)).empty());
}

TEST(Diagnose, LeadsToAForeignPage) {
  // 64 pages 100 .. 163, and page 4 of the table read as page 900.
  std::vector<float> scores(4096);
  std::iota(scores.begin(), scores.end(), 0.0f);
  std::reverse(scores.begin(), scores.end());  // the top k are 0 .. 2047
  std::vector<int32_t> positions(kK);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<int64_t> slots;
  for (int32_t& p : positions) {
    const bool wrong = p / 64 == 4;
    slots.push_back((wrong ? 900 : 100 + p / 64) * 64 + p % 64);
    if (wrong) p = -2;
  }
  EXPECT_THAT(
      leads(diagnose_list({scores, kK, Contract::kSet, {}, positions, slots})),
      Contains(AllOf(HasSubstr("a wrong page: 64 entries lie in 1 page"),
                     HasSubstr("(900)"),
                     HasSubstr("in 1 place of the table (4)"))));
}

TEST(Diagnose, CountsEntriesThatNameNothing) {
  const std::vector<float> scores = normal_row(5000);
  std::vector<int32_t> list = oracle::exact_top_k(scores, kK);
  std::fill(list.begin() + 1124, list.end(), -1);
  EXPECT_THAT(
      diagnose(scores, list),
      Contains("924 of the first 2048 entries are -1, the first at entry "
               "1124"));
}

// --- scores ---

struct ScoredRow {
  std::vector<float> scores;
  oracle::RowScores reference;

  explicit ScoredRow(int n) : scores(normal_row(n)) {
    reference.value.assign(scores.begin(), scores.end());
    reference.zero.assign(scores.size(), 0);
    reference.bound.assign(scores.size(), 1e-6f);
    reference.largest = 5;
  }
  std::vector<std::string> diagnose() const {
    std::vector<int64_t> wrong;
    for (size_t j = 0; j < scores.size(); ++j)
      if (!(std::abs(double{scores[j]} - reference.value[j]) <= 1e-3))
        wrong.push_back(int64_t(j));
    return diagnose_scores(
        {scores, reference, wrong, 1e-3, [](int64_t) { return 0.25f; }});
  }
};

TEST(Diagnose, LeadsToAStaleScale) {
  ScoredRow poison(300);
  poison.scores[40] *= 1e30f;  // the ratio itself
  poison.scores[41] *= 4e30f;  // a scale of 1e30 for one of 0.25
  EXPECT_THAT(leads(poison.diagnose()),
              testing::ElementsAre(HasSubstr("a stale scale: 2 wrong scores")));
  ScoredRow power(300);
  power.scores[40] *= 8;
  EXPECT_THAT(leads(power.diagnose()),
              testing::ElementsAre(HasSubstr("1 wrong score is 2^3 of the")));
  power.scores[41] /= 32;
  EXPECT_THAT(leads(power.diagnose()),
              testing::ElementsAre(HasSubstr("powers of two, 2^-5 to 2^3")));
  power.scores[42] *= 3;  // no power of two: no lead
  EXPECT_TRUE(leads(power.diagnose()).empty());
}

TEST(Diagnose, LeadsToACommonFactor) {
  ScoredRow row(300);
  for (double& value : row.reference.value)
    value = value < 0 ? value - 1 : value + 1;  // none near 0
  for (size_t j = 0; j < row.scores.size(); ++j)
    row.scores[j] = float(row.reference.value[j] / 2);
  EXPECT_THAT(leads(row.diagnose()),
              testing::ElementsAre(HasSubstr("every score is 2^-1 of its")));
}

TEST(Diagnose, LeadsToAWrongPageOfScores) {
  ScoredRow row(600);
  for (size_t t = 0; t < 64; ++t)  // place 5 scored with the page of place 2
    row.scores[5 * 64 + t] = float(row.reference.value[2 * 64 + t]);
  EXPECT_THAT(leads(row.diagnose()),
              testing::ElementsAre(AllOf(
                  HasSubstr("a wrong page: the wrong scores fill 1 place"),
                  HasSubstr("the first place 5, positions 320 to 383"),
                  HasSubstr("its scores are those of place 2"))));
}

}  // namespace
}  // namespace exact_topk::harness
