// SPDX-License-Identifier: Apache-2.0
#include "harness/run_select_case.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

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
        candidate_(std::in_place, c_.library,
                   abi_select_options(c_.item, c_.plan.max_keys,
                                      selection_.list_entries(), c_.settings,
                                      c_.library.describe())),
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms) {}

  CaseResult run() {
    bool whole = true;
    for (const std::string& arm : c_.settings.arms)
      whole = whole && run_arm(arm);
    if (whole && c_.settings.timing) time();
    if (whole) record_late();
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
                        selection_.call(*candidate_, arm,
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
      const auto witness = candidate_->witness(int(r));
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
    const auto ready = [&](const std::string& arm, const std::string&) {
      if (select(arm, 0)) judged = lists();
    };
    const auto check = [&](const std::string& arm, const std::string&) {
      if (select(arm, 1))
        record_repeat(judgement_.log, c_, judged, lists(), 0,
                      [&](int row) { return where(size_t(row), arm); });
    };
    times_ = time_parts({*candidate_,
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

  // The check "reuse": called with the same pointers and other scores (each row
  // turned round), the candidate selects from those. One that keeps results by
  // pointer or shape gives the old list. One that was wrong already has nothing
  // new to show.
  bool reuse(const std::string& arm) {
    const std::vector<Piece> old = lists();
    const bool wrong_already = judgement_.log.failed();
    selection_.turn_rows();
    if (!select(arm, c_.settings.repeat + 1)) return false;
    const std::vector<Piece> now = lists();
    for (size_t r = 0; r < selection_.rows(); ++r) {
      const bool same = now[r].bytes == old[r].bytes;
      judgement_.log.record("reuse", where(r, arm),
                            same || !wrong_already ? reuse_fault(r, same) : "");
    }
    selection_.turn_rows();
    return true;
  }

  std::string reuse_fault(size_t r, bool same) const {
    const ListRules rules = c_.list_rules();
    const oracle::ListVerdict verdict = oracle::judge_list(
        selection_.list(r), selection_.scores(r), rules.k, rules.values);
    if (verdict.holds(rules.contract)) return "";
    return fmt::format(
        "called again with the same pointers and other scores, it gave {}; {} "
        "keys of their top k are missed",
        same ? "the list of the scores before" : "a wrong list",
        verdict.missed);
  }

  // The check "late": no list changes after its call has returned. Closing the
  // candidate ends whatever still runs on a stream or a thread that the call
  // did not wait for.
  void record_late() {
    candidate_.reset();
    const std::optional<size_t> row = selection_.changed_row();
    judgement_.log.record(
        "late", row ? where(*row, c_.settings.arms.back()) : Where{},
        row ? "the list was written after xtk_select had returned: by another "
              "thread, or on a stream that the call did not wait for"
            : "");
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
  std::optional<Candidate> candidate_;  // nothing when it is closed
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
