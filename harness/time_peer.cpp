// SPDX-License-Identifier: Apache-2.0
#include "harness/time_peer.h"

#include <algorithm>
#include <filesystem>

#include "harness/abi.h"
#include "harness/guarded_buffer.h"
#include "harness/time_parts.h"

namespace exact_topk::harness {
namespace {

class PeerSelection {
 public:
  PeerSelection(const Library& peer, const CaseContext& context,
                const cases::Step& step, const LaunchOutputs& outputs,
                std::span<const int32_t> page_table, CheckLog& log)
      : peer_(peer),
        c_(context),
        log_(log),
        list_(int64_t(step.rows.size()) * k(), XTK_LIST),
        candidate_(peer, options()) {
    const auto width = size_t(c_.plan.table_width);
    for (size_t r = 0; r < step.rows.size(); ++r) {
      if (!step.rows[r].live) continue;
      const auto scores = outputs.row<float>(XTK_SCORES, step, int(r));
      const auto table = page_table.subspan(r * width, width);
      indptr_.push_back(int32_t(indptr_.size()) * k());
      row_start_.push_back(int64_t(scores_.size()));
      lengths_.push_back(int32_t(scores.size()));
      scores_.insert(scores_.end(), scores.begin(), scores.end());
      tables_.insert(tables_.end(), table.begin(), table.end());
    }
    for (size_t i = 0; i < lengths_.size(); ++i)
      own_.emplace_back(indptr_[i], entries(i));
  }

  std::vector<PartTime> time() {
    const std::vector<std::string>& arms = peer_.describe().arms;
    const auto ready = [&](const std::string& arm, const std::string&) {
      select(arm, 0);
    };
    // A replay's list stays with the peer: the same call after it shows that it
    // still selects as it must.
    const auto check = [&](const std::string& arm, const std::string&) {
      select(arm, 1);
    };
    std::vector<PartTime> times = time_parts(
        {candidate_, {XTK_STAGE_SELECT}, arms, {kWhole, kEmpty}, ready, check},
        *c_.settings.timing);
    const Work work{double(scores_.size()) * sizeof(float), 0};
    const std::string file = std::filesystem::path(peer_.path()).stem();
    for (PartTime& time : times) {
      time.arm = arms.size() == 1 ? file : file + '/' + time.arm;
      if (time.part != kWhole) continue;
      log_.record("wall time", {-1, -1, -1, -1, time.arm}, wall_fault(time));
      time.floor = floor_of(work, *c_.settings.timing);
      time.part = "selection";  // what it is of a launch
    }
    return times;
  }

 private:
  int k() const { return c_.item.geometry.k; }
  int64_t entries(size_t i) const {
    return std::min<int64_t>(lengths_[i], k());
  }
  xtk_open_options options() const {
    cases::Plan plan;  // no cache, no tensors of a launch
    plan.max_keys = plan.score_stride = c_.plan.max_keys;
    plan.list_entries = int64_t(c_.item.rows) * k();
    xtk_open_options options =
        abi_options(c_.item, plan, c_.settings, peer_.describe());
    options.layers = 0;
    options.wave_size = 0;
    options.blocks = 0;
    return options;
  }

  void select(const std::string& arm, int attempt) {
    list_.fill({c_.settings.seed, 0, 0, attempt});
    candidate_.select(
        {sizeof(xtk_select_args), arm.c_str(), int(lengths_.size()), k(),
         scores_.data(), int64_t(scores_.size()), row_start_.data(),
         lengths_.data(), tables_.data(), c_.plan.table_width, indptr_.data(),
         list_.data(), int64_t(c_.item.rows) * k()});
    log_.record("peer", {-1, -1, -1, -1, arm}, fault());
  }

  // What is wrong with the lists.
  std::string fault() const {
    const std::string outside = list_.fault(own_);
    if (!outside.empty()) return outside;
    const ListRules rules{claimed_contract(peer_), c_.settings.values, k()};
    const auto width = size_t(c_.plan.table_width);
    Judgement judgement;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const std::vector<int32_t> before = list_.before(indptr_[i], entries(i));
      judge_list_of(judgement, {-1, -1, int(i), lengths_[i]}, rules,
                    std::span(scores_).subspan(size_t(row_start_[i]),
                                               size_t(lengths_[i])),
                    std::span(tables_).subspan(i * width, width),
                    {list_.row(indptr_[i], entries(i)), before});
    }
    for (const CheckResult& check : judgement.log.results())
      if (check.outcome == Outcome::kFailed)
        return check.name + ": " + check.reason;
    return "";
  }

  const Library& peer_;
  const CaseContext& c_;
  CheckLog& log_;
  std::vector<float> scores_;       // of the rows, one after another
  std::vector<int64_t> row_start_;  // [rows]
  std::vector<int32_t> lengths_;    // [rows]
  std::vector<int32_t> tables_;     // [rows][table_width]
  std::vector<int32_t> indptr_;     // [rows]
  std::vector<std::pair<int64_t, int64_t>> own_;  // entries of the rows
  GuardedBuffer<int32_t> list_;
  Candidate candidate_;
};

}  // namespace

std::vector<PartTime> time_peer(const Library& peer, const CaseContext& context,
                                const cases::Step& step,
                                const LaunchOutputs& outputs,
                                std::span<const int32_t> page_table,
                                CheckLog& log) {
  return PeerSelection(peer, context, step, outputs, page_table, log).time();
}

}  // namespace exact_topk::harness
