// SPDX-License-Identifier: Apache-2.0
#include "harness/shrink.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

float from_radix_key(uint32_t key) {
  return std::bit_cast<float>((key >> 31) != 0 ? key & 0x7FFFFFFFu : ~key);
}

// The radix keys that occur, ascending.
std::vector<uint32_t> distinct_keys(std::span<const float> scores) {
  std::vector<uint32_t> keys(scores.size());
  std::ranges::transform(scores, keys.begin(), oracle::radix_key);
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

class Shrinking {
 public:
  Shrinking(const ShrinkRules& rules, const RowSelector& selector)
      : rules_(rules), selector_(selector) {}

  SmallRow run(std::span<const float> scores, int k) {
    if (take({scores.begin(), scores.end()}, k))
      while (improved()) {
      }
    small_.distinct = int64_t(distinct_keys(small_.scores).size());
    return small_;
  }

 private:
  // One round of everything. True where it made the row smaller.
  bool improved() {
    const SmallRow before = small_;
    fewer_values();
    fewer_winners();
    smaller_k();
    fewer_keys();
    return before.k != small_.k || before.scores.size() != small_.scores.size();
  }

  // Keeps the row if it fails.
  bool take(std::vector<float> scores, int k) {
    if (small_.calls >= rules_.most_calls) return false;
    ++small_.calls;
    std::vector<int32_t> list = selector_(scores, k);
    if (list.empty() || oracle::judge_list(list, scores, k, rules_.values)
                            .holds(rules_.contract))
      return false;
    small_.scores = std::move(scores);
    small_.k = k;
    small_.list = std::move(list);
    return true;
  }

  // Leaves out chunks of `things` as long as `works` with the rest.
  template <typename Thing, typename Works>
  void leave_out(std::vector<Thing> things, Works works) {
    for (size_t chunk = (things.size() + 1) / 2; chunk > 0; chunk /= 2)
      for (size_t at = 0; at < things.size();) {
        std::vector<Thing> rest(things.begin(), things.begin() + long(at));
        rest.insert(rest.end(),
                    things.begin() + long(std::min(at + chunk, things.size())),
                    things.end());
        if (works(rest))
          things = std::move(rest);
        else
          at += chunk;
      }
  }

  // A score that is left out falls to the next one that is kept; below the
  // lowest, it rises to that.
  void fewer_values() {
    const std::vector<float> all = small_.scores;
    leave_out(distinct_keys(all), [&](const std::vector<uint32_t>& kept) {
      if (kept.empty()) return false;
      std::vector<float> scores = all;
      for (float& score : scores) {
        const auto above =
            std::ranges::upper_bound(kept, oracle::radix_key(score));
        score =
            from_radix_key(above == kept.begin() ? kept.front() : *(above - 1));
      }
      return take(std::move(scores), small_.k);
    });
  }

  // Keys that are left out get the lowest score.
  void fewer_winners() {
    const std::vector<float> all = small_.scores;
    const uint32_t lowest = distinct_keys(all).front();
    std::vector<size_t> above;
    for (size_t p = 0; p < all.size(); ++p)
      if (oracle::radix_key(all[p]) != lowest) above.push_back(p);
    leave_out(above, [&](const std::vector<size_t>& kept) {
      std::vector<float> scores(all.size(), from_radix_key(lowest));
      for (const size_t p : kept) scores[p] = all[p];
      return take(std::move(scores), small_.k);
    });
  }

  void smaller_k() {
    for (int k = 1; k < small_.k; k *= 2)
      if (take(small_.scores, k)) return;
  }

  void fewer_keys() {
    const std::vector<float> all = small_.scores;
    std::vector<size_t> positions(all.size());
    std::iota(positions.begin(), positions.end(), size_t{0});
    leave_out(positions, [&](const std::vector<size_t>& kept) {
      std::vector<float> scores;
      for (const size_t p : kept) scores.push_back(all[p]);
      return take(std::move(scores), small_.k);
    });
  }

  const ShrinkRules& rules_;
  const RowSelector& selector_;
  SmallRow small_;
};

}  // namespace

SmallRow shrink_row(std::span<const float> scores, int k,
                    const ShrinkRules& rules, const RowSelector& selector) {
  return Shrinking(rules, selector).run(scores, k);
}

}  // namespace exact_topk::harness
