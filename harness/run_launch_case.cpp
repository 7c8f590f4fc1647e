// SPDX-License-Identifier: Apache-2.0
#include "harness/run_launch_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/judge_launch.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/perturb.h"
#include "harness/snapshot.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

using cases::Input;
using cases::Lifetime;

class LaunchCase {
 public:
  explicit LaunchCase(const CaseContext& context)
      : c_(context),
        inputs_(c_.item, c_.plan, c_.settings, c_.group, c_.weights),
        layout_(c_.item, c_.plan),
        options_(
            abi_options(c_.item, c_.plan, c_.settings, c_.library.describe())),
        candidate_(c_.library, options_),
        outputs_(layout_, c_.plan),
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms) {
    load_layers();
  }

  CaseResult run() {
    if (steps() && repeats()) {
      every_layer_untouched();
      if (c_.settings.timing) time();
    }
    CaseResult result = conclude(std::move(judgement_), c_.item, c_.group);
    result.times = std::move(times_);
    return result;
  }

 private:
  const Description& about() const { return c_.library.describe(); }
  const cases::Step& step(int t) const { return c_.plan.steps[size_t(t)]; }
  Filling filling(int launch, int t, int attempt) const {
    return {c_.settings.seed, launch, t, attempt};
  }
  Where where(int launch, int t, const std::string& arm) const {
    return {launch, t, -1, -1, c_.arm_name(arm)};
  }
  Where row_place(int launch, int t, int row, const std::string& arm) const {
    return {launch, t, row, step(t).rows[size_t(row)].keys(), c_.arm_name(arm)};
  }

  void need_bytes(xtk_tensor tensor, const char* name, uint64_t needed) {
    const uint64_t held = candidate_.tensor_bytes(tensor);
    if (held < needed)
      throw CandidateError(
          XTK_INVALID,
          fmt::format("candidate {} holds {} bytes of {}, which takes {}",
                      c_.library.path(), held, name, needed));
  }

  void load_layers() {
    for (const xtk_tensor tensor : kOutputs)
      if (published(about(), tensor))
        need_bytes(tensor, output_name(tensor), layout_.bytes(tensor));
    for (const Input input : inputs_.used())
      need_bytes(abi_tensor(input), inputs_.info(input).name.c_str(),
                 inputs_.info(input).bytes);
    for (int launch = 0; launch < c_.item.launches; ++launch) {
      caches_.emplace_back(inputs_.bytes(Input::kCache, launch));
      for (const Input input : inputs_.used()) {
        const Lifetime lifetime = inputs_.info(input).lifetime;
        if (lifetime == Lifetime::kLayer ||
            (lifetime == Lifetime::kCase && launch == 0))
          candidate_.write(abi_tensor(input), launch, 0,
                           inputs_.bytes(input, launch));
      }
    }
  }

  // Writes one tensor's bytes of the own slots of live rows.
  void write_poison(const cases::Poison& poison, int launch, int t) {
    const oracle::PageLayout page_layout = c_.item.geometry.page_layout;
    // Bytes of 16 dims lie together in every layout.
    constexpr int kRun = 16;
    for (size_t r = 0; r < step(t).rows.size(); ++r) {
      const cases::Row& row = step(t).rows[r];
      if (!row.live) continue;
      for (int dim = 0; dim < oracle::kHeadDim; dim += kRun)
        candidate_.write(
            XTK_CACHE, launch, oracle::key_byte(row.slot, dim, page_layout),
            std::as_bytes(
                std::span(poison.keys[r]).subspan(size_t(dim), size_t(kRun))));
      candidate_.write(XTK_CACHE, launch, oracle::scale_byte(row.slot),
                       std::as_bytes(std::span(&poison.scales[r], 1)));
    }
  }

  // One launch, from poison to views of what it left. False: the case cannot
  // go on.
  bool launch(const std::string& arm, int launch, int t, int attempt,
              const cases::Poison& poison) {
    return all_launched(c_, judgement_.log, where(launch, t, arm), [&] {
      write_poison(poison, launch, t);
      for (const xtk_tensor tensor : kOutputs)
        if (published(about(), tensor))
          fill_output(candidate_, filling(launch, t, attempt), tensor,
                      layout_.bytes(tensor));
      candidate_.launch({sizeof(xtk_launch_args), arm.c_str(), launch,
                         abi_kind(c_.item.kind), c_.item.rows,
                         abi_partials(c_.item)});
      outputs_.look(candidate_, about(), launch);
      note_paths(arm, t);
    });
  }

  // What the candidate says of the last launch's way through its kernels.
  void note_paths(const std::string& arm, int t) {
    std::vector<WitnessedRow> rows;
    for (const cases::Row& row : step(t).rows) {
      const auto witness = candidate_.witness(static_cast<int>(rows.size()));
      if (!witness) return;
      rows.push_back({*witness, row.keys(),
                      row.live ? std::optional(row.request) : std::nullopt});
    }
    judgement_.paths[arm].add(paths_of(rows));
  }

  void record_untouched(const Where& at, const std::string& fault) {
    judgement_.log.record("untouched", at, fault);
  }

  void weights_untouched(const Where& at, int launch) {
    for (const Input input : inputs_.used())
      if (inputs_.info(input).lifetime == Lifetime::kLayer &&
          input != Input::kCache)
        record_untouched(at, input_fault(candidate_, inputs_, input, launch));
  }

  // Everything that a launch may not have written but the weights and caches
  // of other layers, which are compared when the case is done.
  void launch_untouched(const Where& at, int launch, int t, int attempt) {
    for (const cases::Row& row : step(t).rows)
      if (row.live)
        caches_[size_t(launch)].take_slot(std::as_bytes(outputs_.cache()),
                                          row.slot,
                                          c_.item.geometry.page_layout);
    record_untouched(at, cache_fault(candidate_, caches_[size_t(launch)],
                                     launch, outputs_.cache().size()));
    for (const Input input : inputs_.used())
      if (inputs_.info(input).lifetime != Lifetime::kLayer)
        record_untouched(at, input_fault(candidate_, inputs_, input, launch));
    weights_untouched(at, launch);
    for (const xtk_tensor tensor : kOutputs)
      if (outputs_.has(tensor))
        record_untouched(at, output_fault(outputs_, layout_, step(t),
                                          filling(launch, t, attempt), tensor,
                                          about().clobbers_score_tail));
    if (about().clobbers_score_tail)
      judgement_.log.untested("score tails",
                              "the candidate says that it may write scores at "
                              "and past n");
  }

  void every_layer_untouched() {
    for (int launch = 0; launch < c_.item.launches; ++launch) {
      const Where at{launch};
      record_untouched(
          at, cache_fault(candidate_, caches_[size_t(launch)], launch,
                          inputs_.bytes(Input::kCache, launch).size()));
      weights_untouched(at, launch);
    }
  }

  std::vector<Piece> snapshot(int t, bool only_results) const {
    return take_snapshot(outputs_, layout_, step(t),
                         c_.item.geometry.page_layout, only_results);
  }

  // Whether the ranks of the group agree on all that the launch left.
  bool ranks_agree(const Where& at, int t) {
    if (c_.group.emulates()) {
      judgement_.log.untested(
          "ranks",
          fmt::format("one rank launched for the {} of the group", c_.item.tp));
      return true;
    }
    if (c_.group.size() == 1) return true;
    const std::string fault = disagreement(snapshot(t, false), c_.group);
    if (c_.group.rank() == 0) judgement_.log.record("ranks", at, fault);
    return fault.empty();
  }

  void compare_arms(int launch, int t, const std::string& arm) {
    if (arm == c_.settings.arms.front()) {
      first_arm_ = snapshot(t, true);
      return;
    }
    record_arms(judgement_.log, c_, first_arm_, snapshot(t, true), arm,
                [&](int row) { return row_place(launch, t, row, ""); });
  }

  bool steps() {
    for (int launch = 0; launch < c_.item.launches; ++launch) {
      dump_.layer_inputs(inputs_, launch);
      for (int t = 0; t < c_.item.steps; ++t)
        if (!one_step(launch, t)) return false;
    }
    return true;
  }

  bool one_step(int layer, int t) {
    inputs_.load_step(layer, t);
    for (const Input input : inputs_.used())
      if (inputs_.info(input).lifetime == Lifetime::kStep)
        candidate_.write(abi_tensor(input), 0, 0, inputs_.bytes(input, layer));
    cases::Poison poison =
        cases::poison(c_.item, c_.plan, c_.settings.seed, layer, t, 0);
    if (c_.settings.perturb)
      flip(*c_.settings.perturb, step(t), layer, t, poison);
    dump_.step_inputs(inputs_, c_.plan, poison, layer, t);
    for (const std::string& arm : c_.settings.arms) {
      if (!launch(arm, layer, t, 0, poison)) return false;
      const Where at = where(layer, t, arm);
      const ReferenceShare share(c_.group, ranks_agree(at, t));
      judge_launch(judgement_,
                   {c_.item,
                    step(t),
                    inputs_,
                    outputs_,
                    filling(layer, t, 0),
                    c_.plan.table_width,
                    c_.list_rules(),
                    {c_.settings.bound, !c_.library.foreign()},
                    c_.arm_name(arm)},
                   share);
      launch_untouched(at, layer, t, 0);
      if (c_.settings.arms.size() > 1) compare_arms(layer, t, arm);
      dump_.results(outputs_, step(t), arm, layer, t);
      if (layer + 1 == c_.item.launches && t + 1 == c_.item.steps)
        last_.push_back(snapshot(t, false));
    }
    return true;
  }

  // The last launch of each arm, again.
  bool repeats() {
    const int layer = c_.item.launches - 1, t = c_.item.steps - 1;
    for (size_t a = 0; a < c_.settings.arms.size(); ++a) {
      const std::string& arm = c_.settings.arms[a];
      for (int attempt = 1; attempt <= c_.settings.repeat; ++attempt) {
        if (!launch(arm, layer, t, attempt,
                    cases::poison(c_.item, c_.plan, c_.settings.seed, layer, t,
                                  attempt)))
          return false;
        record_repeat(judgement_.log, c_, last_[a], snapshot(t, false), attempt,
                      [&](int row) { return row_place(layer, t, row, arm); });
        launch_untouched(where(layer, t, arm), layer, t, attempt);
      }
    }
    return true;
  }

  // What each part of the last launch must do at least.
  Work work(const std::string& part, const cases::Step& rows) const {
    const oracle::Geometry& g = c_.item.geometry;
    Work front, score, select;
    front.bytes = 2.0 * (double(g.q_lora) * g.hidden +
                         double(g.heads) * oracle::kHeadDim * g.q_lora +
                         double(oracle::kHeadDim) * g.hidden) +
                  4.0 * g.heads * g.hidden;
    std::map<int, int64_t> keys;  // of each request
    for (const cases::Row& row : rows.rows) {
      if (!row.live) continue;
      keys[row.request] = std::max(keys[row.request], row.keys());
      score.flops += 2.0 * double(row.keys()) * g.heads * oracle::kHeadDim;
      select.bytes += sizeof(float) * double(row.keys());
    }
    for (const auto& [request, n] : keys)
      score.bytes += double(n) * (oracle::kHeadDim + sizeof(float));
    if (part == "front") return front;
    if (part == "scoring") return score;
    if (part == "selection") return select;
    if (part == "whole") return {front.bytes + score.bytes, score.flops};
    return {};
  }

  // Times the last launch of every arm; what its replays leave is what was
  // judged.
  void time() {
    const int layer = c_.item.launches - 1, t = c_.item.steps - 1;
    static const std::vector<std::string> kParts{
        "whole", "front", "key-and-query", "scoring", "selection", "empty"};
    const auto ready = [&](const std::string& arm) {
      launch(arm, layer, t, 0,
             cases::poison(c_.item, c_.plan, c_.settings.seed, layer, t, 0));
      // Replays must write everything themselves.
      for (const xtk_tensor tensor : kOutputs)
        if (published(about(), tensor))
          fill_output(candidate_, filling(layer, t, 0), tensor,
                      layout_.bytes(tensor));
    };
    const auto check = [&](const std::string& arm) {
      outputs_.look(candidate_, about(), layer);
      const auto a =
          std::find(c_.settings.arms.begin(), c_.settings.arms.end(), arm) -
          c_.settings.arms.begin();
      record_repeat(judgement_.log, c_, last_[size_t(a)], snapshot(t, false), 0,
                    [&](int row) { return row_place(layer, t, row, arm); });
    };
    times_ = time_parts(candidate_, XTK_STAGE_LAUNCH, c_.settings.arms, kParts,
                        *c_.settings.timing, ready, check);
    for (PartTime& time : times_) {
      time.floor = floor_of(work(time.part, step(t)), *c_.settings.timing);
      if (time.part == "whole")
        judgement_.log.record("wall time", where(layer, t, time.arm),
                              wall_fault(time));
    }
  }

  const CaseContext& c_;
  LaunchInputs inputs_;
  OutputLayout layout_;
  xtk_open_options options_;
  Candidate candidate_;
  LaunchOutputs outputs_;
  LaunchDump dump_;
  Judgement judgement_;
  std::vector<CacheImage> caches_;        // a layer: what it must hold
  std::vector<Piece> first_arm_;          // scores and lists of the first arm
  std::vector<std::vector<Piece>> last_;  // the last launch, an arm
  std::vector<PartTime> times_;           // of each arm's parts
};

}  // namespace

CaseResult run_launch_case(const CaseContext& context) {
  return LaunchCase(context).run();
}

}  // namespace exact_topk::harness
