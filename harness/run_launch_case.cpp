// SPDX-License-Identifier: Apache-2.0
#include "harness/run_launch_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>

#include "cases/order.h"
#include "harness/abi.h"
#include "harness/compare_runs.h"
#include "harness/judge_launch.h"
#include "harness/launch_dump.h"
#include "harness/open_candidate.h"
#include "harness/perturb.h"
#include "harness/snapshot.h"
#include "harness/time_parts.h"
#include "harness/time_peer.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

using cases::Input;
using cases::Lifetime;

std::vector<Piece> keys_of(std::vector<Piece> pieces) {
  std::erase_if(pieces, [](const Piece& piece) {
    return std::string_view(piece.name) != "key";
  });
  return pieces;
}

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
        dump_(c_.sink, c_.item, leaf_info(c_), c_.settings.arms),
        keys_(size_t(c_.item.launches)) {
    for (const std::string& arm : c_.settings.arms)
      if (const auto bytes = candidate_.scratch_bytes(arm))
        judgement_.scratch[arm] = *bytes;
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
      start(arm, launch, t, attempt, poison);
      outputs_.look(candidate_, about(), launch);
      note_paths(arm, t);
    });
  }

  void start(const std::string& arm, int launch, int t, int attempt,
             const cases::Poison& poison) {
    write_poison(poison, launch, t);
    fill(kOutputs, filling(launch, t, attempt));
    candidate_.launch({sizeof(xtk_launch_args), arm.c_str(), launch,
                       abi_kind(cases::kind_of(c_.item, launch)), c_.item.rows,
                       abi_partials(c_.item, launch)});
  }

  // Those of the outputs that are published get a pattern.
  void fill(std::span<const xtk_tensor> outputs, const Filling& filling) {
    for (const xtk_tensor tensor : outputs)
      if (published(about(), tensor))
        fill_output(candidate_, filling, tensor, layout_.bytes(tensor));
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
      if (t + 1 < c_.item.steps) continue;
      if (c_.settings.timing)
        keys_[size_t(layer)].push_back(keys_of(snapshot(t, false)));
      if (layer + 1 == c_.item.launches) last_.push_back(snapshot(t, false));
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

  // What each part of a launch must do at least.
  Work work(const std::string& part, const cases::Step& rows) const {
    const oracle::Geometry& g = c_.item.geometry;
    Work front, score, select;
    front.bytes = 2.0 * (double(g.q_lora) * g.hidden +
                         double(g.heads) * oracle::kHeadDim * g.q_lora +
                         double(oracle::kHeadDim) * g.hidden) +
                  4.0 * g.heads * g.hidden;
    std::map<int32_t, int64_t> keys;  // of each page, which rows may share
    for (size_t r = 0; r < rows.rows.size(); ++r) {
      const cases::Row& row = rows.rows[r];
      for (int64_t first = 0; first < row.keys();
           first += oracle::kPageTokens) {
        int64_t& most =
            keys[rows.page_table[r * size_t(c_.plan.table_width) +
                                 size_t(first) / oracle::kPageTokens]];
        most = std::max(
            most, std::min<int64_t>(oracle::kPageTokens, row.keys() - first));
      }
      score.flops += 2.0 * double(row.keys()) * g.heads * oracle::kHeadDim;
      select.bytes += sizeof(float) * double(row.keys());
    }
    for (const auto& [page, n] : keys)
      score.bytes += double(n) * (oracle::kHeadDim + sizeof(float));
    if (part == "front") return front;
    if (part == "scoring") return score;
    if (part == "selection") return select;
    if (part == kWhole) return {front.bytes + score.bytes, score.flops};
    return {};
  }

  // What replays of a part of the last launch must write themselves.
  void poison_part(const std::string& part, int launch, int t) {
    static const std::map<std::string, std::vector<xtk_tensor>> kWritten{
        {kWhole, {std::begin(kOutputs), std::end(kOutputs)}},
        {"front", {XTK_X, XTK_Q_LORA, XTK_MAILBOX, XTK_RAW_KEY, XTK_W}},
        {"key-and-query", {XTK_INDEX_QUERY}},
        {"scoring", {XTK_SCORES}},
        {"selection", {XTK_LIST}},
        {kEmpty, {}}};
    fill(kWritten.at(part), filling(launch, t, 0));
    if (part == "key-and-query")
      write_poison(first_poison(launch, t), launch, t);
  }

  cases::Poison first_poison(int launch, int t) const {
    return cases::poison(c_.item, c_.plan, c_.settings.seed, launch, t, 0);
  }

  // Times the last launch of every arm, or those of all layers in the model's
  // order; what their replays leave is what was judged.
  void time() {
    const int last = c_.item.launches - 1, t = c_.item.steps - 1;
    const int first = cases::model_order(c_.item) ? 0 : last;
    const auto ready = [&](const std::string& arm, const std::string& part) {
      all_launched(c_, judgement_.log, where(last, t, arm), [&] {
        for (int l = first; l <= last; ++l)
          start(arm, l, t, 0, first_poison(l, t));
        for (int l = first; l <= last && part == kWhole; ++l)
          write_poison(first_poison(l, t), l, t);
        poison_part(part, last, t);
      });
    };
    const auto compare = [&](const std::string& arm, int layer,
                             const std::vector<Piece>& judged,
                             const std::vector<Piece>& left) {
      record_repeat(judgement_.log, c_, judged, left, 0,
                    [&](int row) { return row_place(layer, t, row, arm); });
    };
    const auto check = [&](const std::string& arm, const std::string& part) {
      const auto a = size_t(
          std::find(c_.settings.arms.begin(), c_.settings.arms.end(), arm) -
          c_.settings.arms.begin());
      // Of launches before the last, the keys are what is left; parts alone
      // make those of other layers from what the last launch left.
      for (int l = first; l < last && part == kWhole; ++l) {
        outputs_.look(candidate_, about(), l);
        compare(arm, l, keys_[size_t(l)][a], keys_of(snapshot(t, false)));
      }
      outputs_.look(candidate_, about(), last);
      compare(arm, last, last_[a], snapshot(t, false));
    };
    const int launches = last - first + 1;
    times_ = time_parts(
        {candidate_,
         {XTK_STAGE_LAUNCH, launches},
         c_.settings.arms,
         {kWhole, "front", "key-and-query", "scoring", "selection", kEmpty},
         ready,
         check},
        *c_.settings.timing);
    for (PartTime& time : times_) {
      const Work once = work(time.part, step(t));
      time.floor = floor_of({launches * once.bytes, launches * once.flops},
                            *c_.settings.timing);
      if (time.part == kWhole)
        judgement_.log.record("wall time", where(last, t, time.arm),
                              wall_fault(time));
    }
    for (const std::string& file : c_.settings.peers) {
      const Library peer = Library::open(file, c_.settings.timeout);
      for (PartTime& time : time_peer(
               peer, c_, step(t), outputs_,
               inputs_.as<int32_t>(Input::kPageTable, last), judgement_.log))
        times_.push_back(std::move(time));
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
  std::vector<std::vector<std::vector<Piece>>>
      keys_;                     // at the last step, [layer][arm]
  std::vector<PartTime> times_;  // of each arm's parts
};

}  // namespace

CaseResult run_launch_case(const CaseContext& context) {
  return LaunchCase(context).run();
}

}  // namespace exact_topk::harness
