// SPDX-License-Identifier: Apache-2.0
#include "harness/selection.h"

#include <algorithm>
#include <cstring>

namespace exact_topk::harness {

Selection::Selection(cases::SelectRows rows, RowPages tables, int k)
    : rows_(std::move(rows)),
      tables_(std::move(tables)),
      rows_before_(rows_),
      pages_before_(tables_.pages),
      k_(k),
      list_(rows_.list_entries, XTK_LIST) {
  for (size_t r = 0; r < this->rows(); ++r)
    own_.emplace_back(rows_.indptr[r], entries(r));
  std::sort(own_.begin(), own_.end());
}

std::span<const float> Selection::scores(size_t r) const {
  return std::span(rows_.scores)
      .subspan(size_t(rows_.row_start[r]), size_t(rows_.lengths[r]));
}

std::span<const int32_t> Selection::table(size_t r) const {
  const auto width = size_t(tables_.width);
  return std::span(tables_.pages).subspan(r * width, width);
}

void Selection::call(Candidate& candidate, const std::string& arm,
                     const Filling& filling) {
  list_.fill(filling);
  candidate.select({sizeof(xtk_select_args), arm.c_str(), int(rows()), k_,
                    rows_.scores.data(), int64_t(rows_.scores.size()),
                    rows_.row_start.data(), rows_.lengths.data(),
                    tables_.width == 0 ? nullptr : tables_.pages.data(),
                    tables_.width, rows_.indptr.data(), list_.data(),
                    rows_.list_entries});
}

std::span<const int32_t> Selection::list(size_t r) const {
  return list_.row(rows_.indptr[r], entries(r));
}

std::vector<int32_t> Selection::before(size_t r) const {
  return list_.before(rows_.indptr[r], entries(r));
}

std::string Selection::input_fault() const {
  // By their bytes: NaN are unequal to themselves.
  const bool same = std::memcmp(rows_.scores.data(), rows_before_.scores.data(),
                                rows_.scores.size() * sizeof(float)) == 0 &&
                    rows_.row_start == rows_before_.row_start &&
                    rows_.lengths == rows_before_.lengths &&
                    rows_.indptr == rows_before_.indptr &&
                    tables_.pages == pages_before_;
  return same ? "" : "an input of the selection changed";
}

Work Selection::work() const {
  Work work;
  for (const int32_t n : rows_.lengths) work.bytes += sizeof(float) * n;
  return work;
}

int64_t Selection::entries(size_t r) const {
  return std::min(rows_.lengths[r], k_);
}

}  // namespace exact_topk::harness
