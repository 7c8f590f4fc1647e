// SPDX-License-Identifier: Apache-2.0
//
// How near some values are to their references as a whole: the two figures that
// serving stacks watch. They see no single wrong score and judge nothing here.
#pragma once

#include <vector>

namespace exact_topk::oracle {

struct Agreement {
  double relative_error = 0.0;  // |values - references| / |references|,
                                // Euclidean
  double cosine = 1.0;          // of the angle between the two
};

// Sums over pairs. Where every pair is equal (a NaN equals a NaN) they agree;
// where another sum is not finite, or all references are 0, the relative error
// is infinite and the cosine 0.
class AgreementSum {
 public:
  void add(double reference, double value);
  Agreement result() const;

 private:
  bool equal_ = true;         // every pair so far
  double references_ = 0.0;   // sum of squares
  double values_ = 0.0;       // sum of squares
  double products_ = 0.0;     // sum of reference * value
  double differences_ = 0.0;  // sum of squares
};

// The best of one list against the best of the other, and so on; a value that
// is missing is 0.
Agreement sorted_agreement(std::vector<double> references,
                           std::vector<double> values);

}  // namespace exact_topk::oracle
