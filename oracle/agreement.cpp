// SPDX-License-Identifier: Apache-2.0
#include "oracle/agreement.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>

namespace exact_topk::oracle {

void AgreementSum::add(double reference, double value) {
  const double difference = value - reference;
  equal_ = equal_ &&
           (reference == value || (std::isnan(reference) && std::isnan(value)));
  references_ += reference * reference;
  values_ += value * value;
  products_ += reference * value;
  differences_ += difference * difference;
}

Agreement AgreementSum::result() const {
  if (equal_) return {};
  if (!(references_ > 0.0) || !std::isfinite(references_) ||
      !std::isfinite(values_))
    return {std::numeric_limits<double>::infinity(), 0.0};
  const double lengths = std::sqrt(references_) * std::sqrt(values_);
  return {std::sqrt(differences_ / references_),
          values_ > 0.0 ? std::clamp(products_ / lengths, -1.0, 1.0) : 0.0};
}

Agreement sorted_agreement(std::vector<double> references,
                           std::vector<double> values) {
  // A total order: NaN has a place in it.
  const auto greater = [](double a, double b) {
    return std::strong_order(a, b) > 0;
  };
  std::ranges::sort(references, greater);
  std::ranges::sort(values, greater);
  values.resize(references.size(), 0.0);
  AgreementSum sum;
  for (std::size_t i = 0; i < references.size(); ++i)
    sum.add(references[i], values[i]);
  return sum.result();
}

}  // namespace exact_topk::oracle
