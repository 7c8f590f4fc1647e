// SPDX-License-Identifier: Apache-2.0
#include "harness/time_peer.h"

#include <filesystem>

#include "harness/abi.h"
#include "harness/selection.h"
#include "harness/time_parts.h"

namespace exact_topk::harness {
namespace {

// The live rows of a launch, one after another.
Selection rows_of(const CaseContext& context, const cases::Step& step,
                  const LaunchOutputs& outputs,
                  std::span<const int32_t> page_table) {
  const int k = context.item.geometry.k;
  cases::SelectRows rows;
  RowPages tables{{}, int(context.plan.table_width)};
  const auto width = size_t(tables.width);
  for (size_t r = 0; r < step.rows.size(); ++r) {
    if (!step.rows[r].live) continue;
    const auto scores = outputs.row<float>(XTK_SCORES, step, int(r));
    const auto pages = page_table.subspan(r * width, width);
    rows.indptr.push_back(int32_t(rows.list_entries));
    rows.list_entries += k;
    rows.row_start.push_back(int64_t(rows.scores.size()));
    rows.lengths.push_back(int32_t(scores.size()));
    rows.scores.insert(rows.scores.end(), scores.begin(), scores.end());
    tables.pages.insert(tables.pages.end(), pages.begin(), pages.end());
  }
  return Selection(std::move(rows), std::move(tables), k);
}

class PeerTiming {
 public:
  PeerTiming(const Library& peer, const CaseContext& context,
             Selection selection, CheckLog& log)
      : peer_(peer),
        c_(context),
        log_(log),
        selection_(std::move(selection)),
        candidate_(peer, options()) {}

  std::vector<PartTime> time() {
    const auto ready = [&](const std::string& arm, const std::string&) {
      select(arm, 0);
    };
    // A replay's list stays with the peer: the same call after it shows that it
    // still selects as it must.
    const auto check = [&](const std::string& arm, const std::string&) {
      select(arm, 1);
    };
    std::vector<PartTime> times = time_parts({candidate_,
                                              {XTK_STAGE_SELECT},
                                              peer_.describe().arms,
                                              {kWhole, kEmpty},
                                              ready,
                                              check},
                                             *c_.settings.timing);
    for (PartTime& time : times) {
      time.arm = name(time.arm);
      if (time.part != kWhole) continue;
      log_.record("wall time", {-1, -1, -1, -1, time.arm}, wall_fault(time));
      time.floor = floor_of(selection_.work(), *c_.settings.timing);
      time.part = "selection";  // what it is of a launch
    }
    return times;
  }

 private:
  // Waves and blocks are the judged candidate's.
  xtk_open_options options() const {
    xtk_open_options options =
        abi_select_options(c_.item, c_.plan.max_keys, selection_.list_entries(),
                           c_.settings, peer_.describe());
    options.wave_size = 0;
    options.blocks = 0;
    return options;
  }

  std::string name(const std::string& arm) const {
    const std::string file = peer_name(peer_);
    return peer_.describe().arms.size() == 1 ? file : file + '/' + arm;
  }

  void select(const std::string& arm, int attempt) {
    const std::string called = name(arm);
    const Where where{-1, -1, -1, -1, called};
    if (all_launched(c_, log_, where, [&] {
          selection_.call(candidate_, arm, {c_.settings.seed, 0, 0, attempt});
        }))
      log_.record("peer", where, fault());
  }

  // The first of what is wrong with the last call.
  std::string fault() const {
    for (const std::string& fault :
         {selection_.outside_fault(), selection_.input_fault()})
      if (!fault.empty()) return fault;
    const oracle::Contract promised = claimed_contract(peer_);
    const oracle::ValueRules by_bits;  // base knows no other
    const ListRules rules{
        promised,
        promised == oracle::Contract::kBase ? by_bits : c_.settings.values,
        c_.item.geometry.k};
    Judgement judgement;
    for (size_t r = 0; r < selection_.rows(); ++r) {
      const std::vector<int32_t> before = selection_.before(r);
      judge_list_of(judgement, {-1, -1, int(r), selection_.length(r)}, rules,
                    selection_.scores(r), selection_.table(r),
                    {selection_.list(r), before});
    }
    for (const CheckResult& check : judgement.log.results())
      if (check.outcome == Outcome::kFailed)
        return check.name + ": " + check.reason;
    return "";
  }

  const Library& peer_;
  const CaseContext& c_;
  CheckLog& log_;
  Selection selection_;
  Candidate candidate_;
};

}  // namespace

std::string peer_name(const Library& peer) {
  return std::filesystem::path(peer.path()).stem();
}

std::vector<PartTime> time_peer(const Library& peer, const CaseContext& context,
                                const cases::Step& step,
                                const LaunchOutputs& outputs,
                                std::span<const int32_t> page_table,
                                CheckLog& log) {
  return PeerTiming(peer, context, rows_of(context, step, outputs, page_table),
                    log)
      .time();
}

}  // namespace exact_topk::harness
