// SPDX-License-Identifier: Apache-2.0
#include "harness/run_select_case.h"

#include "cases/families.h"
#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/judge.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/selection.h"
#include "harness/snapshot.h"
#include "harness/time_parts.h"

namespace exact_topk::harness {
namespace {

class SelectCase {
 public:
  explicit SelectCase(const CaseContext& context)
      : c_(context),
        selection_(cases::select_rows(c_.item, c_.settings.seed), {},
                   c_.item.geometry.k),
        candidate_(c_.library,
                   abi_select_options(c_.item, c_.plan.max_keys,
                                      selection_.list_entries(), c_.settings,
                                      c_.library.describe())),
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms) {}

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
  Where where(size_t r, const std::string& arm) const {
    return {-1, -1, int(r), selection_.length(r), c_.arm_name(arm)};
  }

  bool select(const std::string& arm, int attempt) {
    if (!all_launched(c_, judgement_.log, {-1, -1, -1, -1, c_.arm_name(arm)},
                      [&] {
                        selection_.call(candidate_, arm,
                                        {c_.settings.seed, 0, 0, attempt});
                        note_paths(arm);
                      }))
      return false;
    judgement_.log.record("untouched", {}, selection_.outside_fault());
    judgement_.log.record("untouched", {}, selection_.input_fault());
    return true;
  }

  // What the candidate says of the last selection's way through its kernels.
  void note_paths(const std::string& arm) {
    std::vector<WitnessedRow> rows;
    for (size_t r = 0; r < selection_.rows(); ++r) {
      const auto witness = candidate_.witness(int(r));
      if (!witness) return;
      rows.push_back({*witness, selection_.length(r), std::nullopt});
    }
    judgement_.paths[arm].add(paths_of(rows));
  }

  std::vector<Piece> lists() const {
    std::vector<Piece> pieces;
    for (size_t r = 0; r < selection_.rows(); ++r) {
      const auto bytes = std::as_bytes(selection_.list(r));
      pieces.push_back(
          {int(r), "list", sizeof(int32_t), {bytes.begin(), bytes.end()}});
    }
    return pieces;
  }

  bool run_arm(const std::string& arm) {
    if (!select(arm, 0)) return false;
    for (size_t r = 0; r < selection_.rows(); ++r) judge(r, arm);
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
    for (PartTime& time : times_) {
      if (time.part != kWhole) continue;
      time.floor = floor_of(selection_.work(), *c_.settings.timing);
      judgement_.log.record("wall time",
                            {-1, -1, -1, -1, c_.arm_name(time.arm)},
                            wall_fault(time));
    }
  }

  void judge(size_t r, const std::string& arm) {
    judgement_.rows_with_keys += selection_.length(r) > 0;
    const std::vector<int32_t> before = selection_.before(r);
    judge_list_of(judgement_, where(r, arm), c_.list_rules(),
                  selection_.scores(r), {}, {selection_.list(r), before});
  }

  void compare_arms(const std::string& arm, const std::vector<Piece>& mine) {
    if (arm == c_.settings.arms.front())
      first_arm_ = mine;
    else
      record_arms(judgement_.log, c_, first_arm_, mine, arm,
                  [&](int row) { return where(size_t(row), ""); });
  }

  const CaseContext& c_;
  Selection selection_;
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
