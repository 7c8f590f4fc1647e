// SPDX-License-Identifier: Apache-2.0
#include "harness/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <regex>

#include "dumps/sentence.h"
#include "exact_topk_commit.h"
#include "harness/failure.h"
#include "harness/input_files.h"
#include "harness/perturb.h"

namespace exact_topk::harness {
namespace {

constexpr double kLongestTimeout = 1e6;  // seconds
constexpr int kMostBlocks = 256;         // SPEC section 4
constexpr int kMostRepeats = 1'000'000;

template <typename Number>
Number number(const std::string& option, const std::string& text, Number least,
              Number most, const char* what) {
  Number value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= least && value <= most))
    throw UsageError(
        fmt::format("{} is '{}', and must be {}", option, text, what));
  return value;
}

double bound(const std::string& text) {
  const double value =
      number<double>("--bound", text, 0, 0.5, "a number in [0, 0.5)");
  if (value >= 0.5)
    throw UsageError(
        fmt::format("--bound is '{}', and must be a number in [0, 0.5)", text));
  return value;
}

int wave(const std::string& text) {
  if (text != "64" && text != "32")
    throw UsageError(fmt::format("--wave is '{}', and must be 64 or 32", text));
  return text == "64" ? 64 : 32;
}

std::string schedule(const std::string& text) {
  static const std::regex form(R"(round-robin|reverse|random:\d{1,19})");
  if (!std::regex_match(text, form))
    throw UsageError(fmt::format(
        "--schedule is '{}', and must be round-robin, reverse or random:SEED",
        text));
  return text;
}

oracle::Contract contract(const std::string& text) {
  const auto known = oracle::parse_contract(text);
  if (!known)
    throw UsageError(fmt::format(
        "--contract is '{}', and must be valid, values, set, position, sorted "
        "or base",
        text));
  return *known;
}

void only(const char* option, const std::string& text, const char* word) {
  if (text != word)
    throw UsageError(
        fmt::format("{} is '{}', and must be {}", option, text, word));
}

// The names of a list written with commas, each once.
std::vector<std::string> names(const char* option, const std::string& text) {
  std::vector<std::string> list;
  for (const std::string_view name : cases::split(text)) {
    if (name.empty())
      throw UsageError(fmt::format("{} is '{}', and one of its names is empty",
                                   option, text));
    if (std::find(list.begin(), list.end(), name) != list.end())
      throw UsageError(
          fmt::format("{} is '{}', and names {} twice", option, text, name));
    list.emplace_back(name);
  }
  return list;
}

// What a capture, which brings its own rows and results, leaves to choose.
constexpr std::array<std::string_view, 7> kBesideCapture = {
    "--capture", "--contract", "--nan",  "--zeros",
    "--bound",   "--json",     "--junit"};

// CLI11 takes "-5" for an option of its own; as "--pos=-5" it reaches the one
// who can say what is wrong with it.
std::vector<std::string> join_negative_numbers(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (const std::string& a : arguments) {
    const bool negative =
        a.size() > 1 && a[0] == '-' &&
        (std::isdigit(static_cast<unsigned char>(a[1])) != 0 || a[1] == '.');
    const bool follows = !joined.empty() && joined.back().starts_with("--") &&
                         joined.back().find('=') == std::string::npos;
    if (negative && follows)
      joined.back() += '=' + a;
    else
      joined.push_back(a);
  }
  return joined;
}

constexpr const char* kCheckText =
    "Checks a sparse-attention indexer entry by entry against an f64 oracle.";
constexpr const char* kTimeText =
    "Times the indexer of a sparse-attention model by graph replay, on cases "
    "that are judged before and after.";

// Registers every option of the program with CLI11, each with a setter that
// throws UsageError.
class CommandLine {
 public:
  CommandLine(Options& options, Program program)
      : app_(program == Program::kCheck ? kCheckText : kTimeText,
             program == Program::kCheck ? "check_topk" : "time_topk"),
        options_(options) {
    app_.allow_extras();  // refused by refuse_extras(), in its own words
    app_.set_help_flag("--help,-h", "Print this and exit");
    app_.set_version_flag("--version", app_.get_name() + " " EXACT_TOPK_VERSION
                                                         " (" EXACT_TOPK_COMMIT
                                                         ")");
    Settings& s = options_.settings;
    // First, so that a report is written where another option is wrong: CLI11
    // sets options in the order in which they are added.
    path("--json", "FILE", "Write the report as JSON", s.json);
    path("--junit", "FILE", "Write the report as JUnit XML", s.junit);

    app_.option_defaults()->group("Cases");
    for (const cases::CaseOption& option : cases::case_options())
      case_option(option);
    path("--suite", "FILE", "Run the cases of a suite file instead",
         options_.suite);
    if (program == Program::kCheck)
      path("--capture", "FILE",
           "Check the tensors that another program saved instead", s.capture);
    text("--filter", "GLOB", "Only cases whose whole name matches",
         options_.filter);
    text("--start-at", "CASE", "Leave out the cases listed before this one",
         options_.start_at);

    app_.option_defaults()->group("Candidate");
    text("--candidate", "NAME", "cpu, nvidia, amd, auto or a FILE.so [cpu]",
         s.candidate);
    value("--arm", "ARM,...",
          "Arms to run; both is base,head [base; a FILE.so: its first]",
          [&s](const std::string& t) {
            s.arms = names("--arm", t == "both" ? "base,head" : t);
            s.arm = t;
          });
    value("--wave", "N", "Wave size, 64 or 32 [the candidate's]",
          [&s](const std::string& t) { s.wave = wave(t); });
    value("--blocks", "N", "Persistent blocks [the candidate's]",
          [&s](const std::string& t) {
            s.blocks = number<int>("--blocks", t, 1, kMostBlocks,
                                   "a whole number from 1 to 256");
          });
    value("--schedule", "SPEC",
          "round-robin, reverse or random:SEED, of a simulated device",
          [&s](const std::string& t) { s.schedule = schedule(t); });
    value("--timeout", "S",
          "Seconds that one call into the candidate may take [1800]",
          [&s](const std::string& t) {
            s.timeout =
                number<double>("--timeout", t, 1e-3, kLongestTimeout,
                               "a number of seconds from 0.001 to 1000000");
          });

    app_.option_defaults()->group("Checks");
    value("--seed", "S", "Of all inputs [1]", [&s](const std::string& t) {
      s.seed =
          number<uint64_t>("--seed", t, 0, std::numeric_limits<uint64_t>::max(),
                           "a whole number from 0 to 2^64 - 1");
    });
    value("--bound", "B",
          "Largest score error over the row's largest reference [1e-4]",
          [&s](const std::string& t) { s.bound = bound(t); });
    value("--contract", "C",
          "What lists must hold: valid, values, set, position, sorted or base "
          "[what the candidate or the capture claims]",
          [&s](const std::string& t) { s.contract = contract(t); });
    value("--nan", "last", "NaN rank below -inf [by their bits]",
          [&s](const std::string& t) {
            only("--nan", t, "last");
            s.values.nan_last = true;
          });
    value("--zeros", "equal", "-0.0 and +0.0 are one value [by their bits]",
          [&s](const std::string& t) {
            only("--zeros", t, "equal");
            s.values.zeros_equal = true;
          });
    if (program == Program::kCheck) {
      value(
          "--query", "fp8",
          "Report the winners of --stage score that an FP8 query would change",
          [&s](const std::string& t) {
            only("--query", t, "fp8");
            s.query_fp8 = true;
          });
      path("--shrink", "FILE",
           "Make the first failed row of --stage select smaller and write it "
           "as a capture",
           s.shrink);
    }
    value("--repeat", "N", "Repeats of a launch, a case [1]",
          [&s](const std::string& t) {
            s.repeat = number<int>("--repeat", t, 1, kMostRepeats,
                                   "a whole number from 1 to 1000000");
          });
    value("--perturb", "BIT",
          "Flip one input bit: launch0/step0/in/TENSOR:ELEMENT:BIT, as a "
          "digest tree names its input leaves",
          [&s](const std::string& t) { s.perturb = parse_perturb(t); });
    flag("--fail-fast", "Start no case after one that failed", s.fail_fast);
    flag("--allow-mistrusted", "MISTRUSTED does not fail the run",
         s.allow_mistrusted);

    if (program == Program::kTime) timing();

    app_.option_defaults()->group("Output");
    path("--dump", "DIR", "Write a digest tree", s.dump);
    flag("--dump-tensors", "Keep the tensors in it", s.dump_tensors);
    flag("--force", "Replace DIR where it exists", s.force);
    flag("--list", "Print the names of the cases and exit", options_.list);
    flag("--dry-run",
         "Print names, reproduction lines and bytes of memory and exit",
         options_.dry_run);
  }

  void timing() {
    Timing& t = options_.settings.timing.emplace();
    app_.option_defaults()->group("Timing");
    value("--trials", "N", "Trials of a pass, of which the median counts [7]",
          [&t](const std::string& text) {
            t.trials = number<int>("--trials", text, 1, kMostRepeats,
                                   "a whole number from 1 to 1000000");
          });
    value("--replays", "N", "Replays of a trial, of which the mean counts [50]",
          [&t](const std::string& text) {
            t.replays = number<int>("--replays", text, 1, kMostRepeats,
                                    "a whole number from 1 to 1000000");
          });
    flag("--cold", "Evict the L2 cache before each replay", t.cold);
    flag("--simulator", "Print times of the candidate cpu, no kernel times",
         t.simulator);
    value("--hbm", "GB/s", "Memory rate that floors assume [4573]",
          [&t](const std::string& text) {
            t.hbm =
                number<double>("--hbm", text, 1, 1e9, "a number from 1 to 1e9");
          });
    value("--tflops", "N", "bf16 matrix rate that floors assume [790]",
          [&t](const std::string& text) {
            t.tflops = number<double>("--tflops", text, 1, 1e9,
                                      "a number from 1 to 1e9");
          });
    value("--peer", "FILE.so,...",
          "Libraries that select, timed on the scores of the same launches",
          [this](const std::string& text) {
            options_.settings.peers = names("--peer", text);
          });
    path("--csv", "FILE", "Write the times as CSV", options_.settings.csv);
  }

  void parse(const std::vector<std::string>& arguments) {
    std::vector<std::string> reversed = join_negative_numbers(arguments);
    std::reverse(reversed.begin(),
                 reversed.end());  // CLI11 takes them from the back
    app_.parse(reversed);
    refuse_extras();
    if (!options_.suite.empty() && !beside_suite_.empty())
      throw UsageError(fmt::format(
          "--suite {} has its own cases and cannot be combined with {}",
          options_.suite, beside_suite_));
    if (!options_.settings.capture.empty()) refuse_beside_capture();
    if (options_.settings.contract)
      contract_of(options_.settings, *options_.settings.contract);
    if (options_.settings.dump.empty() &&
        (options_.settings.dump_tensors || options_.settings.force))
      throw UsageError(
          fmt::format("{} means nothing without --dump DIR",
                      options_.settings.force ? "--force" : "--dump-tensors"));
  }

  std::string help() const { return app_.help(); }

 private:
  template <typename Set>
  void value(const char* name, const char* shown, const char* help, Set set) {
    app_.add_option_function<std::string>(name, set, help)->type_name(shown);
  }

  void text(const char* name, const char* shown, const char* help,
            std::string& target) {
    value(name, shown, help, [name, &target](const std::string& t) {
      if (t.empty()) throw UsageError(fmt::format("{} is empty", name));
      target = t;
    });
  }

  void path(const char* name, const char* shown, const char* help,
            std::string& target) {
    text(name, shown, help, target);
  }

  void refuse_extras() const {
    const std::vector<std::string> extras = app_.remaining();
    if (extras.empty()) return;
    throw UsageError(extras.front().starts_with("-")
                         ? fmt::format("{} is no option", extras.front())
                         : cases::stray_word(extras.front()));
  }

  void refuse_beside_capture() const {
    for (const CLI::Option* option : app_.get_options())
      if (const std::string name = option->get_name();
          option->count() > 0 &&
          std::find(kBesideCapture.begin(), kBesideCapture.end(), name) ==
              kBesideCapture.end())
        throw UsageError(fmt::format(
            "--capture {} has its own rows and cannot be combined with {}",
            options_.settings.capture, name));
  }

  void flag(const char* name, const char* help, bool& target) {
    app_.add_flag(name, target, help);
  }

  void case_option(const cases::CaseOption& option) {
    const auto set = [this, &option](const std::vector<std::string>& values) {
      try {
        option.set(options_.selected,
                   fmt::format("{}", fmt::join(values, ",")));
      } catch (const std::invalid_argument& error) {
        throw UsageError(error.what());
      }
      if (option.name != "--tp" && beside_suite_.empty())
        beside_suite_ = option.name;
    };
    app_.add_option_function<std::vector<std::string>>(
            std::string(option.name), set, std::string(option.help))
        ->type_name(std::string(option.value))
        ->type_size(1)
        ->expected(1, CLI::detail::expected_max_vector_size)
        ->allow_extra_args(false);  // "--pos 1 2" leaves the 2 behind
  }

  CLI::App app_;
  Options& options_;
  std::string beside_suite_;  // the first case option given that a suite does
                              // not allow beside it
};

}  // namespace

Parsed parse_options(const std::vector<std::string>& arguments,
                     Program program) {
  Parsed parsed;
  parsed.options.settings.inputs = input_files(arguments);
  CommandLine line(parsed.options, program);
  try {
    line.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    parsed.text = line.help();
  } catch (const CLI::CallForVersion& version) {
    parsed.text = std::string(version.what()) + "\n";
  } catch (const std::exception& error) {
    parsed.error = dumps::sentence_of(error);
  }
  return parsed;
}

}  // namespace exact_topk::harness
