// SPDX-License-Identifier: Apache-2.0
#include "harness/run_select_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cases/families.h"
#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/guarded_buffer.h"
#include "harness/judge.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/snapshot.h"
#include "harness/time_parts.h"

namespace exact_topk::harness {
namespace {

class SelectCase {
 public:
  explicit SelectCase(const CaseContext& context)
      : c_(context),
        rows_(cases::select_rows(c_.item, c_.settings.seed)),
        before_(rows_),
        list_(rows_.list_entries, XTK_LIST),
        candidate_(c_.library, options()),
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
  xtk_open_options options() const {
    cases::Plan plan;  // no cache, no tensors of a launch
    plan.max_keys = plan.score_stride = c_.plan.max_keys;
    plan.list_entries = rows_.list_entries;
    xtk_open_options options =
        abi_options(c_.item, plan, c_.settings, c_.library.describe());
    options.layers = 0;
    return options;
  }
  int64_t entries(size_t r) const {
    return std::min(rows_.lengths[r], c_.item.geometry.k);
  }
  Where where(size_t r, const std::string& arm) const {
    return {-1, -1, int(r), rows_.lengths[r], c_.arm_name(arm)};
  }

  bool select(const std::string& arm, int attempt) {
    list_.fill({c_.settings.seed, 0, 0, attempt});
    const xtk_select_args args{sizeof(xtk_select_args),
                               arm.c_str(),
                               int(rows_.lengths.size()),
                               c_.item.geometry.k,
                               rows_.scores.data(),
                               int64_t(rows_.scores.size()),
                               rows_.row_start.data(),
                               rows_.lengths.data(),
                               nullptr,
                               0,
                               rows_.indptr.data(),
                               list_.data(),
                               rows_.list_entries};
    if (!all_launched(c_, judgement_.log, {-1, -1, -1, -1, c_.arm_name(arm)},
                      [&] {
                        candidate_.select(args);
                        note_paths(arm);
                      }))
      return false;
    judgement_.log.record("untouched", {}, list_.fault(own_));
    judgement_.log.record(
        "untouched", {},
        std::memcmp(rows_.scores.data(), before_.scores.data(),
                    rows_.scores.size() * sizeof(float)) == 0 &&
                rows_.row_start == before_.row_start &&
                rows_.lengths == before_.lengths &&
                rows_.indptr == before_.indptr
            ? ""
            : "an input of the selection changed");
    return true;
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
      const auto bytes = std::as_bytes(list_.row(rows_.indptr[r], entries(r)));
      pieces.push_back(
          {int(r), "list", sizeof(int32_t), {bytes.begin(), bytes.end()}});
    }
    return pieces;
  }

  bool run_arm(const std::string& arm) {
    if (!select(arm, 0)) return false;
    for (size_t r = 0; r < rows_.lengths.size(); ++r) judge(r, arm);
    const std::vector<Piece> first = lists();
    for (const Piece& piece : first)
      dump_.result(arm, 0, 0, piece.row, "list",
                   {dumps::Dtype::i32,
                    {int64_t(piece.bytes.size() / sizeof(int32_t))},
                    piece.bytes});
    if (c_.settings.arms.size() > 1) compare_arms(arm, first);
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
    const auto ready = [&](const std::string& arm, const std::string&) {
      if (select(arm, 0)) judged = lists();
    };
    const auto check = [&](const std::string& arm, const std::string&) {
      if (select(arm, 1))
        record_repeat(judgement_.log, c_, judged, lists(), 0,
                      [&](int row) { return where(size_t(row), arm); });
    };
    times_ = time_parts({candidate_,
                         {XTK_STAGE_SELECT},
                         c_.settings.arms,
                         {kWhole, kEmpty},
                         ready,
                         check},
                        *c_.settings.timing);
    Work work;
    for (const int32_t n : rows_.lengths) work.bytes += sizeof(float) * n;
    for (PartTime& time : times_) {
      if (time.part != kWhole) continue;
      time.floor = floor_of(work, *c_.settings.timing);
      judgement_.log.record("wall time",
                            {-1, -1, -1, -1, c_.arm_name(time.arm)},
                            wall_fault(time));
    }
  }

  void judge(size_t r, const std::string& arm) {
    const auto scores =
        std::span<const float>(rows_.scores)
            .subspan(size_t(rows_.row_start[r]), size_t(rows_.lengths[r]));
    const std::vector<int32_t> before =
        list_.before(rows_.indptr[r], entries(r));
    judgement_.rows_with_keys += rows_.lengths[r] > 0;
    judge_list_of(judgement_, where(r, arm), c_.list_rules(), scores, {},
                  {list_.row(rows_.indptr[r], entries(r)), before});
  }

  void compare_arms(const std::string& arm, const std::vector<Piece>& mine) {
    if (arm == c_.settings.arms.front())
      first_arm_ = mine;
    else
      record_arms(judgement_.log, c_, first_arm_, mine, arm,
                  [&](int row) { return where(size_t(row), ""); });
  }

  const CaseContext& c_;
  cases::SelectRows rows_;
  const cases::SelectRows before_;  // what the candidate must leave alone
  GuardedBuffer<int32_t> list_;
  std::vector<std::pair<int64_t, int64_t>> own_;  // entries of the rows
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
