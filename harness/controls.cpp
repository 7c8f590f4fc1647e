// SPDX-License-Identifier: Apache-2.0
#include "harness/controls.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

// The best key that the list does not name, the lowest position of equals; -1
// where it names all.
int32_t best_unselected(std::span<const int32_t> entries, const SlotMap& slots,
                        std::span<const float> scores) {
  std::vector<bool> listed(scores.size());
  for (const int32_t slot : entries)
    if (const int32_t position = slots.position(slot); position >= 0)
      listed[size_t(position)] = true;
  int32_t best = -1;
  uint32_t best_key = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    const uint32_t key = oracle::radix_key(scores[j]);
    if ((best < 0 || key > best_key) && !listed[j]) {
      best = int32_t(j);
      best_key = key;
    }
  }
  return best;
}

// The smallest f32 above a value.
float next_above(double value) {
  const float nearest = float(value);
  return double{nearest} > value
             ? nearest
             : std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

size_t largest_reference(const oracle::RowScores& reference) {
  size_t largest = 0;
  for (size_t j = 1; j < reference.value.size(); ++j)
    if (std::abs(reference.value[j]) > std::abs(reference.value[largest]))
      largest = j;
  return largest;
}

}  // namespace

void ControlTally::add(const Where& where, const char* control,
                       const char* check, bool was_caught) {
  ++run;
  caught += was_caught;
  if (!was_caught && escaped.empty())
    escaped = fmt::format("{}: the control '{}' was not caught by the check {}",
                          to_string(where), control, check);
}

void control_list(ControlTally& tally, const Where& where, const Judges& judges,
                  oracle::Contract contract, const oracle::ListJudge& judge,
                  const SlotMap& slots, const RowList& row,
                  std::span<const float> scores) {
  if (row.entries.empty()) return;
  std::vector<int32_t> spoiled(row.entries.begin(), row.entries.end());
  const RowList spoiled_row{spoiled, row.before};

  const bool full = scores.size() > row.entries.size();  // n > k
  const int32_t best =
      full ? best_unselected(row.entries, slots, scores) : int32_t{-1};
  spoiled.back() = full ? slots.slot(best) : slots.outside();
  const oracle::ListVerdict replaced =
      judges.list(judge, slots, spoiled_row).list;
  tally.add(where, "replaced", full ? "set" : "range",
            full ? !replaced.set : !replaced.range);

  if (row.entries.size() < 2) return;
  spoiled.back() = row.entries.front();
  spoiled.front() = row.entries.back();
  const oracle::ListVerdict swapped =
      judges.list(judge, slots, spoiled_row).list;
  const bool promises_order = contract == oracle::Contract::kPosition ||
                              contract == oracle::Contract::kSorted;
  tally.add(where, "swapped", "order",
            promises_order ? !swapped.holds(contract) : !swapped.base);
}

void control_scores(ControlTally& tally, const Where& where,
                    const Judges& judges, std::span<const float> scores,
                    const oracle::RowScores& reference, double bound) {
  if (scores.empty()) return;
  std::vector<float> spoiled(scores.begin(), scores.end());
  const auto caught = [&] {
    return judges.scores(spoiled, reference, bound).faults > 0;
  };

  const size_t top = largest_reference(reference);
  spoiled[top] =
      std::bit_cast<float>(std::bit_cast<uint32_t>(scores[top]) ^ (1u << 30));
  tally.add(where, "flipped", "scores", caught());
  spoiled[top] = scores[top];

  const size_t middle = scores.size() / 2;
  const double allowed = reference.value[middle] + bound * reference.largest;
  float raised = float(allowed + bound * reference.largest);
  if (double{raised} <= allowed || raised == scores[middle])
    raised = next_above(allowed);
  spoiled[middle] = raised;
  tally.add(where, "raised", "scores", caught());
}

}  // namespace exact_topk::harness
