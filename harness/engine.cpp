// SPDX-License-Identifier: Apache-2.0
#include "harness/engine.h"

#include <errno.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cases/order.h"
#include "cases/plan.h"
#include "cases/words.h"
#include "dumps/sentence.h"
#include "harness/binding.h"
#include "harness/board.h"
#include "harness/case_context.h"
#include "harness/case_queue.h"
#include "harness/environment.h"
#include "harness/failure.h"
#include "harness/loader.h"
#include "harness/output.h"
#include "harness/perturb.h"
#include "harness/progress.h"
#include "harness/report_files.h"
#include "harness/report_text.h"
#include "harness/repro.h"
#include "harness/run_capture.h"
#include "harness/run_case.h"
#include "harness/run_identity.h"
#include "harness/select_cases.h"
#include "harness/shrink_case.h"
#include "harness/status.h"
#include "harness/time_peer.h"
#include "harness/together.h"

namespace exact_topk::harness {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

CaseResult not_run(std::string name, std::string repro, std::string reason) {
  CaseResult result;
  result.name = std::move(name);
  result.repro = std::move(repro);
  result.verdict = Outcome::kSkipped;
  result.reason = std::move(reason);
  return result;
}

// For the way between ranks. What a plug-in says may be no UTF-8.
std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The arms to run: those asked for, which the library must have, or its first.
std::vector<std::string> choose_arms(const Settings& settings,
                                     const Library& library) {
  const std::vector<std::string>& there = library.describe().arms;
  if (settings.arms.empty()) {
    if (there.empty())
      throw UsageError(fmt::format("{} offers no arm", library.path()));
    return {there.front()};
  }
  for (const std::string& arm : settings.arms)
    if (std::find(there.begin(), there.end(), arm) == there.end())
      throw UsageError(fmt::format("--arm {} needs the arm {}, and {} has {}",
                                   settings.arm, arm, library.path(),
                                   fmt::join(there, ", ")));
  return settings.arms;
}

void check_offer(const Library& library, const std::vector<cases::Case>& cases,
                 int wave) {
  const Description& offer = library.describe();
  if (wave != 0 && offer.wave_sizes != 0 &&
      (offer.wave_sizes & static_cast<uint32_t>(wave)) == 0)
    throw UsageError(
        fmt::format("--wave {} is not offered by {}", wave, library.path()));
  for (const cases::Case& c : cases) {
    const uint32_t stage = c.stage == cases::Stage::kLaunch  ? XTK_STAGE_LAUNCH
                           : c.stage == cases::Stage::kScore ? XTK_STAGE_SCORE
                                                             : XTK_STAGE_SELECT;
    if ((offer.stages & stage) == 0)
      throw UsageError(fmt::format("--stage {} is not offered by {}",
                                   cases::word_of(cases::kStageWords, c.stage),
                                   library.path()));
  }
}

class Run {
 public:
  Run(const Group& world, const Options& options)
      : world_(world), options_(options), settings_(options.settings) {
    report_.candidate.name = settings_.candidate;
    report_.allow_mistrusted = settings_.allow_mistrusted;
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    failure::set_reporter({});
    failure::set_claim(nullptr);
  }

  int execute() {
    try {
      prepare_reports();
      prepare_cases();
      if (options_.list || options_.dry_run) {
        print_cases();
        return kPassedStatus;
      }
      prepare_board();
      prepare_library();
      prepare_tree();
      run_cases();
      return finish();
    } catch (const Ended& ended) {
      return end(ended);
    } catch (const std::exception& error) {
      // This rank's alone: it must report while there is something to report
      // from.
      failure::fail(status_of(error), dumps::sentence_of(error));
    }
  }

 private:
  bool first() const { return world_.rank() == 0; }

  void prepare_reports() {
    together(world_, [&] { files_.open(settings_); });
  }

  void prepare_cases() {
    together(world_, [&] {
      cases_ = select_cases(options_, world_.size());
      check_stages();
    });
    report_.environment = environment();
    std::set<int> tp;
    for (const cases::Case& c : cases_) tp.insert(c.tp);
    report_.tp.assign(tp.begin(), tp.end());
    for (const int t : report_.tp) groups_.emplace(t, Group::of(t));
    for (const cases::Case& c : cases_) {
      names_.push_back(cases::name(c));
      repros_.push_back(repro_line(c, settings_, groups_.at(c.tp)));
    }
  }

  // Refuses options that none of the cases gives a meaning.
  void check_stages() const {
    const auto none = [&](cases::Stage stage) {
      return std::none_of(
          cases_.begin(), cases_.end(),
          [&](const cases::Case& c) { return c.stage == stage; });
    };
    if (settings_.query_fp8 && none(cases::Stage::kScore))
      throw UsageError("--query fp8 needs a case of --stage score");
    if (!settings_.shrink.empty() && none(cases::Stage::kSelect))
      throw UsageError("--shrink needs a case of --stage select");
  }

  void print_cases() {
    together(world_, [&] {
      if (!first()) return;
      for (size_t i = 0; i < cases_.size(); ++i) {
        if (!options_.dry_run) {
          print(names_[i] + "\n");
          continue;
        }
        const cases::Plan plan = cases::make_plan(cases_[i], settings_.seed);
        const std::string skipped =
            plan.skipped.empty() ? ""
                                 : fmt::format("skipped    {}\n", plan.skipped);
        print(fmt::format("case       {}\n{}bytes      {}\n{}", names_[i],
                          text_run(repros_[i]), plan.bytes, skipped));
      }
    });
  }

  // From here on a rank that fails can report.
  void prepare_board() {
    board_.emplace(world_, static_cast<int64_t>(cases_.size()));
    failure::set_claim(board_->claim());
    failure::set_reporter(
        [this](const failure::Failure& failure) { report_failure(failure); });
  }

  void prepare_library() {
    together(world_, [&] {
      library_.emplace(Library::open(settings_.candidate, settings_.timeout));
      settings_.arms = choose_arms(settings_, *library_);
      check_offer(*library_, cases_, settings_.wave);
      contract_of(settings_, claimed_contract(*library_));
      check_timing();
      if (settings_.perturb)
        check_perturb(*settings_.perturb, cases_, settings_.seed);
    });
    const Description& d = library_->describe();
    bind();
    report_.candidate = {
        d.name, d.version, XTK_ABI_VERSION,
        settings_.arm.empty() ? settings_.arms.front() : settings_.arm,
        d.device};
  }

  void check_timing() const {
    if (!settings_.timing) return;
    check_replays(*library_);
    if (!settings_.peers.empty()) check_peers();
  }

  // Their selections stand beside that of one launch, each under a name.
  void check_peers() const {
    for (const cases::Case& c : cases_) {
      if (c.stage != cases::Stage::kLaunch)
        throw UsageError(fmt::format(
            "--peer needs --stage launch, whose scores peers select from, not "
            "{}",
            cases::word_of(cases::kStageWords, c.stage)));
      if (cases::model_order(c))
        throw UsageError(
            fmt::format("--peer times the selection of one launch, and --order "
                        "{} that of {}",
                        c.order, c.launches));
    }
    std::set<std::string> names(settings_.arms.begin(), settings_.arms.end());
    for (const std::string& file : settings_.peers) {
      const Library peer = Library::open(file, settings_.timeout);
      check_replays(peer);
      if ((peer.describe().stages & XTK_STAGE_SELECT) == 0)
        throw UsageError(
            fmt::format("--peer {} does not offer the stage select", file));
      if (!names.insert(peer_name(peer)).second)
        throw UsageError(
            fmt::format("--peer {} would be listed as {}, as another is", file,
                        peer_name(peer)));
    }
  }

  // Times of a simulator are no kernel times.
  void check_replays(const Library& library) const {
    if (library.functions().replay == nullptr)
      throw UsageError(fmt::format(
          "candidate {} does not export xtk_replay, which timing needs",
          library.path()));
    if (library.describe().device == "cpu" && !settings_.timing->simulator)
      throw UsageError(fmt::format(
          "candidate {} runs on the cpu, where a replay is no kernel time; "
          "--simulator prints it all the same",
          library.path()));
  }

  void bind() {
    settings_.device = world_.node_rank();
    const Binding mine = bind_device(library_->describe(), settings_.device);
    const std::vector<std::string> all = world_.all_gather(mine.text);
    for (size_t r = 0; r < all.size(); ++r)
      if (!all[r].empty())
        report_.environment.devices.push_back(
            fmt::format("rank {} -> {}", r, all[r]));
    if (!first()) return;
    for (const std::string& line : report_.environment.devices)
      std::fputs(fmt::format("binding    {}\n", line).c_str(), stderr);
  }

  // One tree, or one an arm.
  void prepare_tree() {
    if (settings_.dump.empty()) return;
    const bool several = settings_.arms.size() > 1;
    together(world_, [&] {
      if (first())
        stage_.emplace(settings_.dump, settings_.force,
                       several ? settings_.arms : std::vector<std::string>{});
    });
    partial_ = world_.broadcast(first() ? stage_->partial().string() : "", 0);
    together(world_, [&] {
      std::map<std::string, dumps::RankWriter, std::less<>> writers;
      for (const std::string& arm : settings_.arms) {
        const std::filesystem::path tree = several ? partial_ / arm : partial_;
        writers.emplace(
            std::piecewise_construct, std::forward_as_tuple(arm),
            std::forward_as_tuple(tree, world_.rank(), settings_.dump_tensors));
      }
      sink_.emplace(std::move(writers));
    });
  }

  void run_cases() {
    if (first())
      print(text_configuration(report_, settings_,
                               static_cast<int64_t>(cases_.size()),
                               groups_.at(report_.tp.front()).count()));
    std::map<int64_t, CaseResult>
        led;  // by this rank, as the first of its group
    {
      CaseQueue queue(cases_);
      Progress progress(static_cast<int>(cases_.size()), first());
      for (size_t phase = 0; phase < queue.phases().size(); ++phase) {
        const Group& group = groups_.at(queue.phases()[phase]);
        SharedInputs weights(group);
        while (const auto index = queue.next(phase, group)) {
          progress.clear();
          CaseResult result = run_one(*index, group, weights, queue, progress);
          if (group.rank() == 0) led.emplace(*index, std::move(result));
        }
      }
    }
    gather(led);
  }

  CaseResult run_one(int64_t index, const Group& group, SharedInputs& weights,
                     CaseQueue& queue, Progress& progress) {
    const auto i = static_cast<size_t>(index);
    current_ = index;
    if (group.rank() == 0) print(text_run(repros_[i]));
    if (first()) progress.update(static_cast<int>(queue.taken()), names_[i]);
    const Clock::time_point begin = Clock::now();
    const CaseResult part =
        run_case(cases_[i], static_cast<int>(i), settings_, group, weights,
                 *library_, sink_ ? &*sink_ : nullptr);
    std::vector<CaseResult> parts;
    for (const std::string& text : group.all_gather(to_text(part)))
      parts.push_back(nlohmann::json::parse(text).get<CaseResult>());
    CaseResult result = merge(parts);
    result.name = names_[i];
    result.repro = repros_[i];
    result.seconds = seconds_since(begin);
    progress.clear();
    if (group.rank() == 0) {
      board_->pin(index, result);
      print(text_result(result));
      const bool fails = result.verdict == Outcome::kFailed ||
                         (result.verdict == Outcome::kMistrusted &&
                          !settings_.allow_mistrusted);
      if (fails && settings_.fail_fast) queue.stop();
    }
    current_ = -1;
    return result;
  }

  // Every rank gets every result, so that all work out the same status.
  void gather(const std::map<int64_t, CaseResult>& led) {
    nlohmann::json mine = nlohmann::json::array();
    for (const auto& [index, result] : led) mine.push_back({index, result});
    std::map<int64_t, CaseResult> all;
    for (const std::string& text : world_.all_gather(to_text(mine)))
      for (const auto& entry : nlohmann::json::parse(text))
        all.emplace(entry.at(0).get<int64_t>(), entry.at(1).get<CaseResult>());
    for (size_t i = 0; i < cases_.size(); ++i) {
      const auto found = all.find(static_cast<int64_t>(i));
      report_.cases.push_back(
          found != all.end()
              ? found->second
              : not_run(names_[i], repros_[i],
                        "not run after a failure (--fail-fast)"));
    }
  }

  // The first failed case of selecting alone, by rank 0 alone.
  void shrink() {
    if (settings_.shrink.empty()) return;
    size_t i = 0;
    while (i < cases_.size() && (cases_[i].stage != cases::Stage::kSelect ||
                                 report_.cases[i].verdict != Outcome::kFailed))
      ++i;
    together(world_, [&] {
      if (!first()) return;
      if (i == cases_.size())
        return print("shrunk     nothing: no case of selecting alone failed\n");
      current_ = static_cast<int64_t>(i);
      const auto shrunk =
          shrink_case(cases_[i], repros_[i], settings_, *library_);
      current_ = -1;
      if (!shrunk)
        return print(fmt::format(
            "shrunk     nothing: every row of {} passes when it is alone\n",
            names_[i]));
      files_.write_shrunk(shrunk->capture);
      Settings replay = settings_;
      replay.capture = settings_.shrink;
      print(fmt::format("shrunk     {}: {}\n{}", names_[i], shrunk->said,
                        text_run(capture_repro_line(replay, world_))));
    });
  }

  void complete_tree() {
    if (!sink_) return;
    together(world_, [&] { sink_->finish(); });
    together(world_, [&] {
      if (!first()) return;
      std::vector<nlohmann::json> runs;
      for (const std::string& arm : settings_.arms)
        runs.push_back(run_identity(options_, report_, cases_, arm));
      stage_->complete(runs, world_.size());
    });
  }

  int end(const Ended& ended) {
    report_.error = ended.sentence;
    stage_.reset();
    if (first()) {
      fmt::print(stderr, "{}: {}\n", program_invocation_short_name,
                 ended.sentence);
      try {
        files_.write(report_);
      } catch (const std::exception&) {
        // The run has its sentence; a report is written where its path allows.
      }
    }
    return ended.status;
  }

  int finish() {
    report_.seconds = seconds_since(begin_);
    try {
      shrink();
      together(world_, [&] {
        if (first()) files_.write(report_);
      });
      // Last: no tree of a run that ends with status 2.
      complete_tree();
    } catch (const Ended& ended) {
      const int status = end(ended);  // also turns the report that could be
                                      // written into one of an error
      if (first()) print(text_summary(report_));
      return status;
    }
    if (first()) print(text_summary(report_));
    return status(report_);
  }

  // On the failure thread of a rank that must leave: everything that the node
  // has finished, this rank's case as the one that failed where the plug-in is
  // to blame. The files of the tree are nobody's any more.
  void report_failure(const failure::Failure& failure) {
    report_.seconds = seconds_since(begin_);
    report_.cases.clear();
    const int64_t current = current_;
    for (size_t i = 0; i < cases_.size(); ++i) {
      const auto pinned = board_->read(static_cast<int64_t>(i));
      report_.cases.push_back(pinned
                                  ? *pinned
                                  : not_run(names_[i], repros_[i],
                                            "not finished when the run ended"));
    }
    if (failure.status == kFailedStatus) blame(current, failure.sentence);
    if (failure.status != kFailedStatus) report_.error = failure.sentence;
    std::error_code ignored;
    if (!partial_.empty()) std::filesystem::remove_all(partial_, ignored);
    files_.write(report_);
    print(text_summary(report_));
  }

  // Without a case (the library failed while it was being loaded) the first one
  // stands for all.
  void blame(int64_t current, const std::string& sentence) {
    CaseResult& result =
        report_.cases[static_cast<size_t>(std::max<int64_t>(current, 0))];
    result.verdict = Outcome::kFailed;
    result.reason = sentence;
  }

  const Group& world_;
  const Options& options_;
  Settings settings_;  // with arms and device filled in
  const Clock::time_point begin_ = Clock::now();
  std::vector<cases::Case> cases_;   // in listed order
  std::vector<std::string> names_;   // of the cases
  std::vector<std::string> repros_;  // of the cases
  std::map<int, Group> groups_;      // by T
  ReportFiles files_;                // --json, --junit
  std::optional<Board> board_;  // results of this node, for a rank that fails
  std::optional<Library> library_;         // the candidate
  std::optional<dumps::TreeStage> stage_;  // rank 0, with --dump
  std::filesystem::path partial_;          // where the tree grows
  std::optional<DumpSink> sink_;           // this rank's part of it
  std::atomic<int64_t> current_{-1};       // case that this rank is in
  Report report_;                          // what is known so far
};

// A command line that could not be read: there is no run, but perhaps a report.
int refuse(const Group& world, const Parsed& parsed) {
  if (world.rank() != 0) return kErrorStatus;
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, parsed.error);
  Report report;
  report.candidate.name = parsed.options.settings.candidate;
  report.environment.ranks = world.size();
  report.error = parsed.error;
  try {
    ReportFiles files;
    files.open(parsed.options.settings);
    files.write(report);
  } catch (const std::exception&) {
    // The sentence above stands; a report is written where its path allows.
  }
  return kErrorStatus;
}

}  // namespace

int run(const Parsed& parsed) {
  const Group world = Group::world();
  if (!parsed.error.empty()) return refuse(world, parsed);
  if (parsed.text.empty() && !parsed.options.settings.capture.empty())
    return run_capture(world, parsed.options.settings);
  if (parsed.text.empty()) return Run(world, parsed.options).execute();
  if (world.rank() == 0) print(parsed.text);
  return kPassedStatus;
}

}  // namespace exact_topk::harness
