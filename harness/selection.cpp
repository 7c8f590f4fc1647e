// SPDX-License-Identifier: Apache-2.0
#include "harness/selection.h"

#include <algorithm>
#include <cstring>

namespace exact_topk::harness {

Selection::Selection(cases::SelectRows rows, RowPages tables, int k)
    : rows_(std::move(rows)),
      tables_(std::move(tables)),
      shown_rows_(rows_),
      shown_pages_(tables_.pages),
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
  // Of the same sizes, so that nothing moves.
  shown_rows_ = rows_;
  shown_pages_ = tables_.pages;
  list_.fill(filling);
  candidate.select({sizeof(xtk_select_args), arm.c_str(), int(rows()), k_,
                    shown_rows_.scores.data(), int64_t(rows_.scores.size()),
                    shown_rows_.row_start.data(), shown_rows_.lengths.data(),
                    tables_.width == 0 ? nullptr : shown_pages_.data(),
                    tables_.width, shown_rows_.indptr.data(), list_.data(),
                    rows_.list_entries});
  returned_.clear();
  for (size_t r = 0; r < rows(); ++r)
    returned_.emplace_back(held(r).begin(), held(r).end());
}

std::span<const int32_t> Selection::held(size_t r) const {
  return list_.row(rows_.indptr[r], entries(r));
}

std::vector<int32_t> Selection::before(size_t r) const {
  return list_.before(rows_.indptr[r], entries(r));
}

std::string Selection::input_fault() const {
  // By their bytes: NaN are unequal to themselves.
  const bool same = std::memcmp(shown_rows_.scores.data(), rows_.scores.data(),
                                rows_.scores.size() * sizeof(float)) == 0 &&
                    shown_rows_.row_start == rows_.row_start &&
                    shown_rows_.lengths == rows_.lengths &&
                    shown_rows_.indptr == rows_.indptr &&
                    shown_pages_ == tables_.pages;
  return same ? "" : "an input of the selection changed";
}

std::optional<size_t> Selection::changed_row() const {
  for (size_t r = 0; r < rows(); ++r)
    if (!std::ranges::equal(held(r), returned_[r])) return r;
  return std::nullopt;
}

void Selection::turn_rows() {
  for (size_t r = 0; r < rows(); ++r) {
    const auto first = rows_.scores.begin() + rows_.row_start[r];
    std::reverse(first, first + rows_.lengths[r]);
  }
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
