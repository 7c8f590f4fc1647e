// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "oracle/formats.h"
#include "oracle/pages.h"
#include "oracle/select.h"

namespace exact_topk::harness {
namespace {

using oracle::Contract;

constexpr size_t kShown = 8;         // keys named one by one
constexpr int64_t kBufferKeys = 16;  // listed keys before a bin looks cut
constexpr size_t kSliceKeys = 8;     // missing keys that make a slice a pattern
constexpr double kClose = 0x1p-8;    // relative: scores may be bf16
constexpr double kPoison = 1e30;     // scale of a slot that is not written yet

std::string value_text(float value) {
  return fmt::format("{:.9g} ({:#010x})", value,
                     std::bit_cast<uint32_t>(value));
}

std::string plural(size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// ---------------------------------------------------------------------------
// Lists
// ---------------------------------------------------------------------------

// A list and what is wrong with it, worked out once for all leads.
class ListFacts {
 public:
  explicit ListFacts(const FailedList& row)
      : row_(row),
        judge_(row.scores, row.k, row.rules),
        verdict_(judge_.judge(row.positions)),
        listed_(row.scores.size()) {
    for (const int32_t p : first_entries())
      if (in_row(p)) listed_[size_t(p)] = true;
    std::vector<bool> winner(row.scores.size());
    for (const int32_t p : judge_.top_k()) {
      winner[size_t(p)] = true;
      if (!listed_[size_t(p)]) missing_.push_back(p);
    }
    for (size_t p = 0; p < listed_.size(); ++p)
      if (listed_[p] && !winner[p]) extra_.push_back(int32_t(p));
  }

  const FailedList& row() const { return row_; }
  const oracle::ListJudge& judge() const { return judge_; }
  const oracle::ListVerdict& verdict() const { return verdict_; }
  const std::vector<int32_t>& missing() const { return missing_; }
  const std::vector<int32_t>& extra() const { return extra_; }
  bool listed(size_t position) const { return listed_[position]; }

  // The min(n, k) entries that should name keys.
  std::span<const int32_t> first_entries() const {
    return row_.positions.first(
        std::min(row_.positions.size(), judge_.top_k().size()));
  }
  bool in_row(int32_t position) const {
    return position >= 0 && size_t(position) < row_.scores.size();
  }
  float score(int32_t position) const { return row_.scores[size_t(position)]; }
  uint32_t key(int32_t position) const {
    return oracle::ranked_key(score(position), row_.rules);
  }
  // The score of the least selected key; the row has keys.
  float least_winner() const {
    const std::vector<int32_t>& winners = judge_.top_k();
    return score(*std::min_element(
        winners.begin(), winners.end(),
        [this](int32_t a, int32_t b) { return key(a) < key(b); }));
  }
  // Place in the order by key, then position; the best has rank 1.
  int64_t rank(int32_t position) const {
    const uint32_t own = key(position);
    int64_t better = 0;
    for (size_t p = 0; p < row_.scores.size(); ++p) {
      const uint32_t other = key(int32_t(p));
      better += other > own || (other == own && int32_t(p) < position);
    }
    return better + 1;
  }

 private:
  const FailedList& row_;
  oracle::ListJudge judge_;
  oracle::ListVerdict verdict_;
  std::vector<bool> listed_;
  std::vector<int32_t> missing_, extra_;  // ascending
};

std::string cut_line(const ListFacts& f) {
  const auto n = f.row().scores.size();
  if (f.judge().top_k().empty()) return "the row has no keys";
  const oracle::ListVerdict& v = f.verdict();
  const std::vector<int32_t>& winners = f.judge().top_k();
  const auto selected =
      std::count_if(winners.begin(), winners.end(),
                    [&](int32_t p) { return f.key(p) == v.threshold; });
  return fmt::format(
      "n {}, k {}: the least selected score is {}, radix key {:#010x}; {} in "
      "the row, {} selected{}",
      n, f.row().k, value_text(f.least_winner()), v.threshold,
      plural(size_t(v.ties), "key has it", "keys have it"), selected,
      v.bits == 0 ? ""
                  : fmt::format("; the base order stops at {} bits", v.bits));
}

std::string keys_line(const ListFacts& f, const char* what,
                      const std::vector<int32_t>& positions) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(positions.size(), kShown); ++i)
    shown.push_back(fmt::format("position {} score {} rank {}", positions[i],
                                value_text(f.score(positions[i])),
                                f.rank(positions[i])));
  return fmt::format("{} {}: {}{}", positions.size(), what,
                     fmt::join(shown, "; "),
                     positions.size() > shown.size() ? "; ..." : "");
}

// Where the promised order is first left; -1: nowhere, or none was promised.
int64_t order_leaves(const ListFacts& f) {
  const std::span<const int32_t> list = f.first_entries();
  if (f.row().contract == Contract::kBase) return f.verdict().first_order_error;
  const bool sorted = f.row().contract == Contract::kSorted;
  if (!sorted && f.row().contract != Contract::kPosition) return -1;
  for (size_t i = 1; i < list.size(); ++i) {
    if (!f.in_row(list[i - 1]) || !f.in_row(list[i])) continue;
    const uint32_t before = f.key(list[i - 1]), now = f.key(list[i]);
    const bool ascends = list[i - 1] < list[i];
    if (sorted ? before < now || (before == now && !ascends) : !ascends)
      return int64_t(i);
  }
  return -1;
}

std::optional<std::string> order_line(const ListFacts& f) {
  const int64_t at = order_leaves(f);
  if (at < 0 || size_t(at) >= f.first_entries().size()) return {};
  const auto i = size_t(at);
  const auto named = [&](int32_t p) {
    return f.in_row(p)
               ? fmt::format("position {} score {}", p, value_text(f.score(p)))
               : std::string("no key of the row");
  };
  const bool base = f.row().contract == Contract::kBase;
  return fmt::format(
      "the order leaves at entry {}: {}, {} {}", i, named(f.first_entries()[i]),
      base ? "must be" : "after",
      named(base ? f.judge().base_positions()[i] : f.first_entries()[i - 1]));
}

std::optional<std::string> unnamed_line(const ListFacts& f) {
  const std::span<const int32_t> list = f.first_entries();
  const auto hole = std::find(list.begin(), list.end(), -1);
  if (hole == list.end()) return {};
  return fmt::format("{} of the first {} entries are -1, the first at entry {}",
                     std::count(list.begin(), list.end(), -1), list.size(),
                     hole - list.begin());
}

// --- leads ---

std::optional<std::string> rules_lead(const ListFacts& f) {
  const FailedList& row = f.row();
  if (row.contract == Contract::kBase || f.verdict().holds(row.contract))
    return {};
  const auto nans = std::count_if(row.scores.begin(), row.scores.end(),
                                  [](float s) { return std::isnan(s); });
  const auto zeros = std::count(row.scores.begin(), row.scores.end(), 0.0f);
  constexpr std::array<oracle::ValueRules, 3> kRules = {
      {{true, false}, {false, true}, {true, true}}};
  for (const oracle::ValueRules rules : kRules) {
    if ((rules.nan_last && nans == 0) || (rules.zeros_equal && zeros == 0))
      continue;
    if (!oracle::judge_list(row.positions, row.scores, row.k, rules)
             .holds(row.contract))
      continue;
    std::vector<std::string> options, evidence;
    if (rules.nan_last) {
      options.emplace_back("--nan last");
      evidence.push_back(fmt::format("{} NaN", nans));
    }
    if (rules.zeros_equal) {
      options.emplace_back("--zeros equal");
      evidence.push_back(fmt::format("{} zeros of either sign", zeros));
    }
    return fmt::format(
        "lead: values ranked by other rules: the row has {}, and with {} the "
        "list holds {}",
        fmt::join(evidence, " and "), fmt::join(options, " "),
        oracle::to_string(row.contract));
  }
  return {};
}

std::optional<std::string> ties_lead(const ListFacts& f) {
  if (f.missing().empty() || !f.verdict().values) return {};
  return fmt::format(
      "lead: ties not broken by the lowest position: {} missing and {} extra "
      "keys all equal the k-th; first missing position {}, first extra {}",
      f.missing().size(), f.extra().size(), f.missing().front(),
      f.extra().front());
}

// How selectors bin scores before they gather candidates in a buffer.
struct Binning {
  const char* name;  // as a kernel engineer calls it
  uint32_t (*bin)(float score);
};

uint32_t f16_key(float score) {
  const uint32_t code = oracle::f32_to_f16(score);
  return (code & 0x8000u) != 0 ? ~code & 0xFFFFu : code | 0x8000u;
}

constexpr std::array<Binning, 6> kBinnings = {{
    {"the top 24 bits of the radix key",
     [](float s) { return oracle::radix_key(s) >> 8; }},
    {"the top 12 bits of the radix key",
     [](float s) { return oracle::radix_key(s) >> 20; }},
    {"the top 12 bits of the fp16 radix key",
     [](float s) { return f16_key(s) >> 4; }},
    {"the top 11 bits of the radix key",
     [](float s) { return oracle::radix_key(s) >> 21; }},
    {"the top 8 bits of the radix key",
     [](float s) { return oracle::radix_key(s) >> 24; }},
    {"the top 8 bits of the fp16 radix key",
     [](float s) { return f16_key(s) >> 8; }},
}};

// A bin of which the list lacks the last arrivals.
struct CutBin {
  const Binning* binning;     // how it was made
  uint32_t bin;               // which
  int64_t members = 0;        // keys of the row in it
  int64_t last_listed = 0;    // number of the last one listed, by position
  int64_t first_missing = 0;  // number of the first one missing

  // The power of two that a buffer which ended between the two would have room
  // for; 0: none lies there.
  int64_t room() const {
    const auto power = int64_t(std::bit_floor(uint64_t(first_missing - 1)));
    return power >= last_listed ? power : 0;
  }
};

// Nothing where the missing keys are not the last arrivals of one bin that also
// holds the k-th key: keys of bins above it need no buffer.
std::optional<CutBin> cut_bin(const ListFacts& f, const Binning& binning) {
  CutBin cut{&binning, binning.bin(f.least_winner())};
  const auto in_bin = [&](int32_t p) {
    return binning.bin(f.score(p)) == cut.bin;
  };
  if (!std::all_of(f.missing().begin(), f.missing().end(), in_bin)) return {};
  int64_t listed = 0;
  for (int32_t p = 0; f.in_row(p); ++p) {
    if (!in_bin(p)) continue;
    ++cut.members;
    if (p == f.missing().front()) cut.first_missing = cut.members;
    if (!f.listed(size_t(p))) continue;
    ++listed;
    cut.last_listed = cut.members;
  }
  if (listed < kBufferKeys || cut.last_listed > cut.first_missing) return {};
  return cut;
}

// What a full buffer leaves out: a bin's last arrivals. Of the ways to bin, the
// one that makes a buffer of a round size, else the finest.
std::optional<std::string> buffer_lead(const ListFacts& f) {
  if (f.missing().empty() || f.verdict().values) return {};
  std::optional<CutBin> best;
  for (const Binning& binning : kBinnings)
    if (const std::optional<CutBin> cut = cut_bin(f, binning);
        cut && (!best || (best->room() == 0 && cut->room() != 0)))
      best = cut;
  if (!best) return {};
  return fmt::format(
      "lead: a dropped buffer: all {} missing keys share {} ({:#x}) with the "
      "k-th and come after every listed one of its {} keys: the last listed is "
      "number {} in position order, the first missing number {}{}",
      f.missing().size(), best->binning->name, best->bin, best->members,
      best->last_listed, best->first_missing,
      best->room() == 0
          ? ""
          : fmt::format(", as a buffer of {} entries would leave it",
                        best->room()));
}

std::optional<std::string> slice_lead(const ListFacts& f) {
  if (f.missing().size() < kSliceKeys || f.verdict().values) return {};
  const int32_t first = f.missing().front(), last = f.missing().back();
  const auto n = int32_t(f.row().scores.size());
  for (int32_t p = first; p <= last; ++p)
    if (f.listed(size_t(p))) return {};
  int32_t before = first - 1, after = last + 1;
  while (before >= 0 && !f.listed(size_t(before))) --before;
  while (after < n && !f.listed(size_t(after))) ++after;
  if (before < 0 && after == n) return {};
  return fmt::format(
      "lead: one slice: all {} missing keys lie at positions {} to {}, and the "
      "list names no key from {} to {}, of {}",
      f.missing().size(), first, last, before + 1, after - 1, n);
}

std::optional<std::string> page_lead(const ListFacts& f) {
  const FailedList& row = f.row();
  std::vector<int64_t> foreign;  // pages of slots that hold no key of the row
  for (size_t i = 0; i < std::min(row.slots.size(), f.first_entries().size());
       ++i)
    if (!f.in_row(row.positions[i]) && row.slots[i] >= 0)
      foreign.push_back(row.slots[i] / oracle::kPageTokens);
  if (foreign.empty()) return {};
  const size_t entries = foreign.size();
  std::sort(foreign.begin(), foreign.end());
  foreign.erase(std::unique(foreign.begin(), foreign.end()), foreign.end());
  std::vector<int32_t> robbed;  // places in the table of missing keys
  for (const int32_t p : f.missing()) robbed.push_back(p / oracle::kPageTokens);
  robbed.erase(std::unique(robbed.begin(), robbed.end()), robbed.end());
  const auto some = [](auto list) {
    const bool cut = list.size() > kShown;
    if (cut) list.resize(kShown);
    return fmt::format("{}{}", fmt::join(list, " "), cut ? " ..." : "");
  };
  return fmt::format(
      "lead: a wrong page: {} in {} that the row's table does not map there "
      "({}); missing keys lie in {} of the table ({})",
      plural(entries, "entry lies", "entries lie"),
      plural(foreign.size(), "page", "pages"), some(foreign),
      plural(robbed.size(), "place", "places"), some(robbed));
}

// ---------------------------------------------------------------------------
// Scores
// ---------------------------------------------------------------------------

bool close_to(double value, double wanted) {
  return std::abs(value - wanted) <= kClose * std::abs(wanted);
}

// Every wrong score is its reference times a power of two, or what the poison
// scale makes of it.
std::optional<std::string> scale_lead(const FailedScores& row) {
  std::vector<int> exponents;
  size_t poisoned = 0;
  for (const int64_t p : row.wrong) {
    const double factor =
        double{row.scores[size_t(p)]} / row.reference.value[size_t(p)];
    if (!(factor > 0) || !std::isfinite(factor)) return {};
    poisoned += close_to(factor, kPoison) ||
                close_to(factor * double{row.scale(p)}, kPoison);
    const int exponent = int(std::lround(std::log2(factor)));
    if (exponent != 0 && close_to(factor, std::ldexp(1.0, exponent)))
      exponents.push_back(exponent);
  }
  const int64_t first = row.wrong.front();
  if (poisoned == row.wrong.size())
    return fmt::format(
        "lead: a stale scale: {} 1e30 times the reference or as a scale of "
        "1e30 "
        "would make it, the poison of slots not yet written; the first, "
        "position {}, has the scale {:g} cached",
        plural(poisoned, "wrong score is", "wrong scores are all"), first,
        row.scale(first));
  if (exponents.size() != row.wrong.size()) return {};
  std::sort(exponents.begin(), exponents.end());
  const bool one = exponents.front() == exponents.back();
  if (one && row.wrong.size() == row.scores.size() && row.scores.size() > 1)
    return fmt::format(
        "lead: a common factor: every score is 2^{} of its reference, as where "
        "e4m3fn and e4m3fnuz codes are confused or a factor of the weights is "
        "left out",
        exponents.front());
  return fmt::format(
      "lead: a stale scale: {} of the reference; the first, position {}, has "
      "the scale {:g} cached",
      one ? fmt::format("{} 2^{}",
                        plural(row.wrong.size(), "wrong score is",
                               "wrong scores are all"),
                        exponents.front())
          : fmt::format("{} wrong scores are all powers of two, 2^{} to 2^{},",
                        row.wrong.size(), exponents.front(), exponents.back()),
      first, row.scale(first));
}

// Whether the scores of one place of the table are the reference's of another.
bool same_page(const FailedScores& row, size_t place, size_t other,
               size_t tokens) {
  for (size_t t = 0; t < tokens; ++t)
    if (!(std::abs(double{row.scores[place * oracle::kPageTokens + t]} -
                   row.reference.value[other * oracle::kPageTokens + t]) <=
          row.allowed))
      return false;
  return true;
}

std::optional<std::string> page_lead(const FailedScores& row) {
  constexpr size_t kTokens = oracle::kPageTokens;
  const size_t n = row.scores.size();
  const auto places = size_t(oracle::pages_of(int64_t(n)));
  std::vector<size_t> wrong(places);  // scores that fail, a page
  for (const int64_t p : row.wrong) ++wrong[size_t(p) / kTokens];
  std::vector<size_t> bad;
  for (size_t place = 0; place < places; ++place) {
    if (wrong[place] == 0) continue;
    // Some keys of a wrong page may score alike, zeros above all.
    const size_t tokens = std::min(kTokens, n - place * kTokens);
    if (wrong[place] * 4 < tokens * 3 || tokens < 4) return {};
    bad.push_back(place);
  }
  if (bad.size() * 2 > places) return {};
  const size_t place = bad.front();
  const size_t tokens = std::min(kTokens, n - place * kTokens);
  std::string whose;
  for (size_t other = 0; other < places && whose.empty(); ++other)
    if (other != place && (other + 1) * kTokens <= n &&
        same_page(row, place, other, tokens))
      whose = fmt::format("; its scores are those of place {}", other);
  return fmt::format(
      "lead: a wrong page: the wrong scores fill {} of the table's {}, the "
      "first place {}, positions {} to {}{}",
      plural(bad.size(), "place", "places"), places, place, place * kTokens,
      place * kTokens + tokens - 1, whose);
}

// The lines that have something to say.
void append(std::vector<std::string>& lines,
            std::initializer_list<std::optional<std::string>> more) {
  for (const std::optional<std::string>& line : more)
    if (line) lines.push_back(*line);
}

}  // namespace

std::vector<std::string> diagnose_list(const FailedList& row) {
  const ListFacts f(row);
  std::vector<std::string> lines = {cut_line(f)};
  if (!f.missing().empty())
    lines.push_back(keys_line(f, "missing", f.missing()));
  if (!f.extra().empty()) lines.push_back(keys_line(f, "extra", f.extra()));
  append(lines, {unnamed_line(f), order_line(f)});
  // Other rules explain a list whole: what else its faults look like is chance.
  if (const std::optional<std::string> rules = rules_lead(f))
    lines.push_back(*rules);
  else if (const std::optional<std::string> buffer = buffer_lead(f))
    append(lines, {buffer, page_lead(f)});
  else
    append(lines, {ties_lead(f), slice_lead(f), page_lead(f)});
  return lines;
}

std::vector<std::string> diagnose_scores(const FailedScores& row) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(row.wrong.size(), kShown); ++i) {
    const auto p = size_t(row.wrong[i]);
    lines.push_back(fmt::format(
        "score at position {} is {}, the reference {:.9g}, the ratio {:.6g}, "
        "the key's scale {:g}",
        p, value_text(row.scores[p]), row.reference.value[p],
        double{row.scores[p]} / row.reference.value[p], row.scale(int64_t(p))));
  }
  if (row.wrong.size() > kShown)
    lines.push_back(fmt::format("{} more scores are wrong, of {}",
                                row.wrong.size() - kShown, row.scores.size()));
  append(lines, {scale_lead(row), page_lead(row)});
  return lines;
}

}  // namespace exact_topk::harness
