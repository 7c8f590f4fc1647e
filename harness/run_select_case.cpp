// SPDX-License-Identifier: Apache-2.0
#include "harness/run_select_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "cases/families.h"
#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/guarded_buffer.h"
#include "harness/judge.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/snapshot.h"

namespace exact_topk::harness {
namespace {

// How long a list with entries that nobody wrote is watched.
constexpr std::chrono::seconds kPatience{2};

class SelectCase {
 public:
  explicit SelectCase(const CaseContext& context)
      : c_(context),
        rows_(cases::select_rows(c_.item, c_.settings.seed)),
        offered_(rows_),
        list_(rows_.list_entries, XTK_LIST),
        candidate_(c_.library,
                   abi_select_options(c_.item, rows_.list_entries, c_.settings,
                                      c_.library.describe())),
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms) {
    for (size_t r = 0; r < rows_.lengths.size(); ++r)
      own_.emplace_back(rows_.indptr[r], entries(r));
    std::sort(own_.begin(), own_.end());
  }

  CaseResult run() {
    bool whole = true;
    for (const std::string& arm : c_.settings.arms)
      whole = whole && run_arm(arm);
    if (whole && c_.settings.timing) time();
    CaseResult result = conclude(std::move(judgement_), c_.item, c_.group);
    result.times = std::move(times_);
    return result;
  }

 private:
  int64_t entries(size_t r) const {
    return std::min(rows_.lengths[r], c_.item.geometry.k);
  }
  static std::span<const float> row_scores(const cases::SelectRows& rows,
                                           size_t r) {
    return std::span(rows.scores)
        .subspan(size_t(rows.row_start[r]), size_t(rows.lengths[r]));
  }
  Where where(size_t r, const std::string& arm) const {
    return {-1, -1, int(r), rows_.lengths[r], c_.arm_name(arm)};
  }

  // Offers `given`, at the same addresses each time.
  bool select(const std::string& arm, int attempt,
              const cases::SelectRows& given) {
    std::ranges::copy(given.scores, offered_.scores.begin());
    std::ranges::copy(given.row_start, offered_.row_start.begin());
    std::ranges::copy(given.lengths, offered_.lengths.begin());
    std::ranges::copy(given.indptr, offered_.indptr.begin());
    list_.fill({c_.settings.seed, 0, 0, attempt});
    const xtk_select_args args{sizeof(xtk_select_args),
                               arm.c_str(),
                               int(offered_.lengths.size()),
                               c_.item.geometry.k,
                               offered_.scores.data(),
                               int64_t(offered_.scores.size()),
                               offered_.row_start.data(),
                               offered_.lengths.data(),
                               nullptr,
                               0,
                               offered_.indptr.data(),
                               list_.data(),
                               rows_.list_entries};
    if (!all_launched(c_, judgement_.log, {-1, -1, -1, -1, c_.arm_name(arm)},
                      [&] {
                        candidate_.select(args);
                        take_lists();
                        note_paths(arm);
                      }))
      return false;
    judgement_.log.record("untouched", {}, list_.fault(own_));
    judgement_.log.record(
        "untouched", {},
        std::memcmp(offered_.scores.data(), given.scores.data(),
                    offered_.scores.size() * sizeof(float)) == 0 &&
                offered_.row_start == given.row_start &&
                offered_.lengths == given.lengths &&
                offered_.indptr == given.indptr
            ? ""
            : "an input of the selection changed");
    return true;
  }
  bool select(const std::string& arm, int attempt) {
    return select(arm, attempt, rows_);
  }

  // Lists as they are when the call returns: nothing later counts.
  void take_lists() {
    returned_.clear();
    for (size_t r = 0; r < rows_.lengths.size(); ++r) {
      const auto entries_now = list_.row(rows_.indptr[r], entries(r));
      returned_.emplace_back(entries_now.begin(), entries_now.end());
    }
  }
  RowList row_list(size_t r, const std::vector<int32_t>& before) const {
    return {returned_[r], before};
  }

  // What the candidate says of the last selection's way through its kernels.
  void note_paths(const std::string& arm) {
    std::vector<WitnessedRow> rows;
    for (const int32_t keys : rows_.lengths) {
      const auto witness = candidate_.witness(static_cast<int>(rows.size()));
      if (!witness) return;
      rows.push_back({*witness, keys, std::nullopt});
    }
    judgement_.paths[arm].add(paths_of(rows));
  }

  std::vector<Piece> lists() const {
    std::vector<Piece> pieces;
    for (size_t r = 0; r < rows_.lengths.size(); ++r) {
      const auto bytes = std::as_bytes(std::span(returned_[r]));
      pieces.push_back(
          {int(r), "list", sizeof(int32_t), {bytes.begin(), bytes.end()}});
    }
    return pieces;
  }

  bool run_arm(const std::string& arm) {
    if (!select(arm, 0)) return false;
    for (size_t r = 0; r < rows_.lengths.size(); ++r) judge(r, arm);
    record_late(arm);
    const std::vector<Piece> first = lists();
    for (const Piece& piece : first)
      dump_.result(arm, 0, 0, piece.row, "list",
                   {dumps::Dtype::i32,
                    {int64_t(piece.bytes.size() / sizeof(int32_t))},
                    piece.bytes});
    if (c_.settings.arms.size() > 1) compare_arms(arm, first);
    if (!reuse(arm)) return false;
    for (int attempt = 1; attempt <= c_.settings.repeat; ++attempt) {
      if (!select(arm, attempt)) return false;
      record_repeat(judgement_.log, c_, first, lists(), attempt,
                    [&](int row) { return where(size_t(row), arm); });
    }
    return true;
  }

  // Times the selection of every arm; the list of a replay stays with the
  // candidate, so the same call after it shows that it still selects the same.
  void time() {
    std::vector<Piece> judged = lists();
    const auto ready = [&](const std::string& arm) {
      if (select(arm, 0)) judged = lists();
    };
    const auto check = [&](const std::string& arm) {
      if (select(arm, 1))
        record_repeat(judgement_.log, c_, judged, lists(), 0,
                      [&](int row) { return where(size_t(row), arm); });
    };
    times_ = time_parts(candidate_, XTK_STAGE_SELECT, c_.settings.arms,
                        {"whole"}, *c_.settings.timing, ready, check);
    Work work;
    for (const int32_t n : rows_.lengths) work.bytes += sizeof(float) * n;
    for (PartTime& time : times_) {
      time.floor = floor_of(work, *c_.settings.timing);
      if (time.part == "whole")
        judgement_.log.record("wall time",
                              {-1, -1, -1, -1, c_.arm_name(time.arm)},
                              wall_fault(time));
    }
  }

  void judge(size_t r, const std::string& arm) {
    const std::vector<int32_t> before =
        list_.before(rows_.indptr[r], entries(r));
    judgement_.rows_with_keys += rows_.lengths[r] > 0;
    judge_list_of(judgement_, where(r, arm), c_.list_rules(),
                  row_scores(rows_, r), {}, row_list(r, before));
  }

  // The check "late": no list changes after the call has returned, as one does
  // whose kernel still runs on a stream or a thread that nobody waited for.
  // Where entries were not written at all, they are given time to be.
  void record_late(const std::string& arm) {
    std::vector<std::vector<int32_t>> before;
    for (size_t r = 0; r < rows_.lengths.size(); ++r)
      before.push_back(list_.before(rows_.indptr[r], entries(r)));
    const auto changed = [&] {
      for (size_t r = 0; r < returned_.size(); ++r) {
        const auto now = list_.row(rows_.indptr[r], entries(r));
        if (!std::equal(now.begin(), now.end(), returned_[r].begin())) return r;
      }
      return returned_.size();
    };
    const auto untouched = [&](size_t r) {
      return entries(r) > 0 && returned_[r] == before[r];
    };
    bool missing = false;
    for (size_t r = 0; r < returned_.size(); ++r) missing |= untouched(r);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (missing && changed() == returned_.size() &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const size_t row = changed();
    const bool late = row < returned_.size();
    judgement_.log.record(
        "late", late ? where(row, arm) : Where{},
        late ? "the list was still being written when xtk_select had "
               "returned: by another thread, or on a stream that the call did "
               "not wait for"
             : "");
  }

  // The check "reuse": called with the same pointers and other scores (each row
  // turned round), the candidate selects from those. One that keeps results by
  // pointer or shape gives the old list. One that was wrong already has nothing
  // new to show.
  bool reuse(const std::string& arm) {
    const std::vector<std::vector<int32_t>> old = returned_;
    const bool wrong_already = judgement_.log.failed();
    cases::SelectRows turned = rows_;
    for (size_t r = 0; r < turned.lengths.size(); ++r) {
      const auto row =
          std::span(turned.scores)
              .subspan(size_t(turned.row_start[r]), size_t(turned.lengths[r]));
      std::reverse(row.begin(), row.end());
    }
    if (!select(arm, c_.settings.repeat + 1, turned)) return false;
    for (size_t r = 0; r < rows_.lengths.size(); ++r) {
      const bool same = returned_[r] == old[r];
      judgement_.log.record(
          "reuse", where(r, arm),
          same || !wrong_already
              ? reuse_fault(row_scores(turned, r), returned_[r], same)
              : "");
    }
    return true;
  }

  std::string reuse_fault(std::span<const float> scores,
                          const std::vector<int32_t>& list, bool same) const {
    const ListRules rules = c_.list_rules();
    const oracle::ListVerdict verdict =
        oracle::judge_list(list, scores, rules.k, rules.values);
    if (verdict.holds(rules.contract)) return "";
    return fmt::format(
        "called again with the same pointers and other scores, it gave {}; {} "
        "keys of their top k are missed",
        same ? "the list of the scores before" : "a wrong list",
        verdict.missed);
  }

  void compare_arms(const std::string& arm, const std::vector<Piece>& mine) {
    if (arm == c_.settings.arms.front())
      first_arm_ = mine;
    else
      record_arms(judgement_.log, c_, first_arm_, mine, arm,
                  [&](int row) { return where(size_t(row), ""); });
  }

  const CaseContext& c_;
  const cases::SelectRows rows_;
  cases::SelectRows offered_;  // the copy that the candidate is given
  GuardedBuffer<int32_t> list_;
  std::vector<std::pair<int64_t, int64_t>> own_;  // entries of the rows
  std::vector<std::vector<int32_t>> returned_;    // lists, when the last call
                                                  // returned
  Candidate candidate_;
  LaunchDump dump_;
  Judgement judgement_;
  std::vector<Piece> first_arm_;
  std::vector<PartTime> times_;  // of each arm
};

}  // namespace

CaseResult run_select_case(const CaseContext& context) {
  return SelectCase(context).run();
}

}  // namespace exact_topk::harness
