// SPDX-License-Identifier: Apache-2.0
#include "oracle/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace exact_topk::oracle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Agreement of(const std::vector<double>& references,
             const std::vector<double>& values) {
  AgreementSum sum;
  for (std::size_t i = 0; i < references.size(); ++i)
    sum.add(references[i], values[i]);
  return sum.result();
}

// Lengths 5 and sqrt(9 + 25): the difference is (0, 1), the product 9 + 20.
TEST(Agreement, IsTheErrorsLengthAndTheAnglesCosine) {
  const Agreement got = of({3, 4}, {3, 5});
  EXPECT_DOUBLE_EQ(got.relative_error, 1.0 / 5);
  EXPECT_DOUBLE_EQ(got.cosine, 29.0 / (5.0 * std::sqrt(34.0)));
  EXPECT_DOUBLE_EQ(of({3, 4}, {6, 8}).cosine, 1.0);  // a wrong scale
  EXPECT_DOUBLE_EQ(of({3, 4}, {6, 8}).relative_error, 1.0);
  EXPECT_DOUBLE_EQ(of({3, 4}, {-3, -4}).cosine, -1.0);
  EXPECT_DOUBLE_EQ(of({3, 4}, {-3, -4}).relative_error, 2.0);
  EXPECT_DOUBLE_EQ(of({3, 4}, {0, 0}).cosine, 0.0);
  EXPECT_DOUBLE_EQ(of({3, 4}, {0, 0}).relative_error, 1.0);
}

TEST(Agreement, IsFullWhereEveryPairIsEqual) {
  for (const std::vector<double>& same : std::vector<std::vector<double>>{
           {}, {0, 0}, {kNan, 1}, {kInf, -kInf, 2}}) {
    EXPECT_EQ(of(same, same).relative_error, 0);
    EXPECT_EQ(of(same, same).cosine, 1);
  }
}

TEST(Agreement, IsNoneWhereItCannotBeMeasured) {
  for (const auto& [a, b] :
       std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{0, 0}, {0, 1}},
           {{1, 2}, {1, kNan}},
           {{1, 2}, {1, kInf}},
           {{kInf, 2}, {kInf, 3}},
           {{kNan, 2}, {1, 2}}}) {
    EXPECT_EQ(of(a, b).relative_error, kInf);
    EXPECT_EQ(of(a, b).cosine, 0);
  }
}

TEST(Agreement, SortsBothAndCountsWhatIsMissingAsZero) {
  EXPECT_EQ(sorted_agreement({3, 4}, {4, 3}).relative_error, 0);
  EXPECT_DOUBLE_EQ(sorted_agreement({4, 3}, {4}).relative_error, 3.0 / 5);
  EXPECT_DOUBLE_EQ(sorted_agreement({3, 4}, {4}).cosine, 4.0 / 5);
  EXPECT_EQ(sorted_agreement({kNan, 1, -kNan}, {-kNan, kNan, 1}).cosine, 1);
}

}  // namespace
}  // namespace exact_topk::oracle
