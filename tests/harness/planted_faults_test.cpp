// SPDX-License-Identifier: Apache-2.0
//
// For each check of SPEC section 6, a candidate with a planted fault that
// exactly that check must catch (faulty_candidate.cpp). Where a fault is by its
// nature seen by several checks (a list with a duplicate also lacks a key), all
// of them are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>
#include <string>

#include "harness/run_case.h"

namespace exact_topk::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;
using Names = std::vector<std::string>;

const std::string kTests = std::string(EXACT_TOPK_BINARY_DIR) + "/tests/";

// Small enough for a moment, with n on both sides of k.
cases::Case small_case(int64_t pos, std::string cache = "random",
                       std::string rowset = "mixed") {
  cases::Case item;
  item.tp = 1;
  item.rows = 2;
  item.cache = std::move(cache);
  item.rowset = std::move(rowset);
  item.pos = pos;
  oracle::Geometry& g = item.geometry;
  g.name = "small";
  g.hidden = 256;
  g.q_lora = 128;
  g.heads = 8;
  g.k = 64;
  item.unswitched = item.geometry;
  return item;
}
constexpr int64_t kShort =
    40;  // n <= k at both steps: a list does not depend on scores
constexpr int64_t kSelected = 2100;  // the family's property needs 2,049
constexpr int64_t kLong = 200;       // n > k for row 0

Settings settings(std::vector<std::string> arms = {"base"}) {
  Settings made;
  made.arms = std::move(arms);
  made.timeout = 60;
  return made;
}

CaseResult run_with(const std::string& fault, const cases::Case& item,
                    const Settings& how = settings()) {
  setenv("EXACT_TOPK_FAULT_OF", EXACT_TOPK_BINARY_DIR "/lib/exact_topk_cpu.so",
         1);
  setenv("EXACT_TOPK_FAULT", fault.c_str(), 1);
  const Group group = Group::of(1);
  SharedInputs weights(group);
  const Library library =
      Library::open(kTests + "faulty_candidate.so", how.timeout);
  return run_case(item, 0, how, group, weights, library, nullptr);
}

Names with_outcome(const CaseResult& result, Outcome outcome) {
  Names names;
  for (const CheckResult& check : result.checks)
    if (check.outcome == outcome) names.push_back(check.name);
  return names;
}

struct Planted {
  const char* fault;
  int64_t pos;
  Names caught_by;
  const char* cache = "random";
  const char* rowset = "mixed";
  cases::Stage stage = cases::Stage::kLaunch;
};

void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.fault;
}

class PlantedFault : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsCaughtByItsCheckAlone) {
  const Planted& planted = GetParam();
  cases::Case item = small_case(planted.pos, planted.cache, planted.rowset);
  if (std::string(planted.rowset) == "padded") item.rows = 4;
  item.stage = planted.stage;
  if (item.stage == cases::Stage::kSelect) item.family = "rising";
  if (item.stage == cases::Stage::kScore) item.fill = "integers";
  const bool twin = std::string(planted.fault) == "other arm";
  const CaseResult result =
      run_with(planted.fault, item,
               settings(twin ? Names{"base", "twin"} : Names{"base"}));
  EXPECT_THAT(with_outcome(result, Outcome::kFailed),
              UnorderedElementsAreArray(planted.caught_by))
      << result.reason;
  EXPECT_EQ(result.verdict,
            planted.caught_by.empty() ? Outcome::kPassed : Outcome::kFailed)
      << result.reason;
  if (planted.caught_by != Names{"launch"}) {
    EXPECT_GT(result.controls_run, 0);
    EXPECT_EQ(result.controls_run, result.controls_caught);
  }
}

const Planted kPlanted[] = {
    {"", kShort, {}},
    {"", kLong, {}},
    {"", kLong, {}, "ties", "padded"},
    {"", kLong, {}, "zeros", "chain"},
    {"no view", kLong, {}, "ties", "padded"},
    // scores
    {"score bit", kShort, {"scores"}},
    {"score nan", kShort, {"scores"}},
    {"score infinite", kShort, {"scores"}},
    {"score of nothing", kShort, {"scores"}, "zeros"},
    {"scores never written", kShort, {"scores"}},
    // the list
    {"list swapped", kShort, {"order"}},
    {"list swapped", kLong, {"order"}},
    {"list misses", kLong, {"set", "order"}},
    {"list wrong tie", kLong, {"set", "ties", "order"}, "ties"},
    {"list duplicate", kLong, {"duplicates", "set", "order"}},
    {"list out of range", kLong, {"range", "set", "order"}},
    // What was not written holds another pattern in the repeat.
    {"list not written", kLong, {"count", "range", "set", "order", "repeat"}},
    // the stages; the fault lies upstream of what is published
    {"x", kLong, {"x"}},
    {"q_lora", kLong, {"q_lora"}},
    {"mailbox", kLong, {"mailbox"}},
    {"raw_key", kLong, {"raw_key"}},
    {"w", kLong, {"w"}},
    {"key", kLong, {"key"}},
    {"query bit", kLong, {"query"}},
    // untouched memory
    {"score past n", kLong, {"untouched"}},
    {"list guard before", kLong, {"untouched"}},
    {"list guard after", kLong, {"untouched"}},
    {"input edited", kLong, {"untouched"}},
    {"table edited", kLong, {"untouched"}},
    {"weight edited", kLong, {"untouched"}},
    {"other layer's weight edited", kLong, {"untouched"}},
    {"pad page written", kLong, {"untouched"}},
    {"other layer's cache written", kLong, {"untouched"}},
    {"pad row's x written", kLong, {"untouched"}, "random", "padded"},
    {"pad row's scores written", kLong, {"untouched"}, "random", "padded"},
    // repeats, arms, failures
    {"repeat", kShort, {"repeat"}},
    {"other arm", kShort, {"arms"}},
    {"launch fails", kShort, {"launch"}},
    {"launch throws", kShort, {"launch"}},
    // selection alone
    {"", kSelected, {}, "random", "mixed", cases::Stage::kSelect},
    {"list swapped",
     kSelected,
     {"order"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"list duplicate",
     kSelected,
     {"duplicates", "set", "order"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"list out of range",
     kSelected,
     {"range", "set", "order"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"list guard before",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"list before the buffer",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"input edited",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"repeat", kSelected, {"repeat"}, "random", "mixed", cases::Stage::kSelect},
    {"row start edited",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"length edited",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"indptr edited",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"list past the buffer",
     kSelected,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"remembers",
     kSelected,
     {"reuse"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    {"answers late",
     kSelected,
     {"count", "range", "set", "ties", "order", "late", "repeat"},
     "random",
     "mixed",
     cases::Stage::kSelect},
    // scoring alone
    {"", kLong, {}, "random", "mixed", cases::Stage::kScore},
    {"score bit", kLong, {"scores"}, "random", "mixed", cases::Stage::kScore},
    {"score past n",
     kLong,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kScore},
    {"input edited",
     kLong,
     {"untouched"},
     "random",
     "mixed",
     cases::Stage::kScore},
    {"repeat", kLong, {"repeat"}, "random", "mixed", cases::Stage::kScore},
    {"remembers", kLong, {"reuse"}, "random", "mixed", cases::Stage::kScore},
};
INSTANTIATE_TEST_SUITE_P(Table, PlantedFault, ::testing::ValuesIn(kPlanted));

TEST(PlantedFault, OfADenseLaunchAndOfOneWithEmbeddings) {
  for (const cases::Kind kind : {cases::Kind::kDense, cases::Kind::kEmbed}) {
    cases::Case item = small_case(kLong);
    item.kind = kind;
    EXPECT_THAT(with_outcome(run_with("", item), Outcome::kFailed), Names{});
    EXPECT_THAT(with_outcome(run_with("x", item), Outcome::kFailed),
                Names{"x"});
  }
}

TEST(PlantedFault, ALaunchThatDoesNothingFailsEveryStage) {
  const Names failed = with_outcome(run_with("does nothing", small_case(kLong)),
                                    Outcome::kFailed);
  for (const char* check : {"x", "q_lora", "mailbox", "raw_key", "w", "query",
                            "key", "scores", "count", "range", "set", "order"})
    EXPECT_THAT(failed, ::testing::Contains(check));
  // It cannot have touched anything.
  EXPECT_THAT(failed, ::testing::Not(::testing::Contains("untouched")));
}

TEST(PlantedFault, ScoreTailsThatACandidateSaysItClobbersAreReported) {
  const CaseResult result =
      run_with("score past n, as it says", small_case(kLong));
  EXPECT_EQ(result.verdict, Outcome::kPassed) << result.reason;
  EXPECT_THAT(with_outcome(result, Outcome::kUntested), Names{"score tails"});
}

TEST(PlantedFault, AnOrderThatIsNotPromisedIsNotHeldAgainstACandidate) {
  const CaseResult result = run_with("promises a set", small_case(kLong));
  EXPECT_EQ(result.verdict, Outcome::kPassed) << result.reason;
  EXPECT_THAT(with_outcome(result, Outcome::kUntested), Names{"order"});
}

TEST(Unpublished, TensorsMakeTheirChecksUntested) {
  EXPECT_THAT(with_outcome(run_with("hides query", small_case(kLong)),
                           Outcome::kUntested),
              Names{"query"});
  const CaseResult no_x = run_with("hides x", small_case(kLong));
  EXPECT_EQ(no_x.verdict, Outcome::kPassed) << no_x.reason;
  EXPECT_THAT(with_outcome(no_x, Outcome::kUntested),
              (Names{"x", "q_lora", "raw_key", "w"}));
}

// The wrapped candidate exports no xtk_witness: nothing is claimed of its
// paths.
TEST(Unpublished, ACandidateWithoutAWitnessHasNoPaths) {
  EXPECT_TRUE(run_with("", small_case(kLong)).paths.empty());
  const CaseResult own = [] {
    const Group group = Group::of(1);
    SharedInputs weights(group);
    return run_case(small_case(kLong), 0, settings(), group, weights,
                    Library::open("cpu", 60), nullptr);
  }();
  EXPECT_EQ(own.paths.at("base").names(),
            (Names{"groups of 1 row", "a stop at 12 bits"}));
}

TEST(Unpublished, ScoresLeaveNoControlToRunWhichFails) {
  const CaseResult result = run_with("hides scores", small_case(kLong));
  EXPECT_THAT(with_outcome(result, Outcome::kFailed), Names{"controls"});
  EXPECT_THAT(result.reason, HasSubstr("no negative control ran"));
}

TEST(Calls, ThatFailOtherwiseThanInTheLaunchEndTheRun) {
  for (const char* fault : {"launch refused", "small buffer"})
    EXPECT_THROW(run_with(fault, small_case(kShort)), CandidateError) << fault;
}

TEST(Skipped, CasesGiveTheirReason) {
  cases::Case item = small_case(1, "random", "padded");
  item.rows = 1;  // row W/2 = 0 is the pad row
  const CaseResult result = run_with("", item);
  EXPECT_EQ(result.verdict, Outcome::kSkipped);
  EXPECT_FALSE(result.reason.empty());
}

TEST(Perturb, FlipsABitThatCandidateAndReferenceBothSee) {
  Settings how = settings();
  how.perturb = Perturb{0, 0, "residual", 3, 22};
  EXPECT_EQ(run_with("", small_case(kShort), how).verdict, Outcome::kPassed);
}

Settings timed() {
  Settings how = settings();
  how.timing.emplace();
  how.timing->trials = 1;
  how.timing->replays = 1;
  return how;
}

TEST(PlantedFaults, ATrueClockPasses) {
  const CaseResult result = run_with("", small_case(kLong), timed());
  EXPECT_EQ(with_outcome(result, Outcome::kFailed), Names{}) << result.reason;
  EXPECT_EQ(result.times.size(), 6u);
}

TEST(PlantedFaults, ATimeThatTheClockDeniesFailsTheCase) {
  const CaseResult result =
      run_with("replay claims half", small_case(kLong), timed());
  EXPECT_EQ(with_outcome(result, Outcome::kFailed), Names{"wall time"});
  EXPECT_THAT(result.reason, HasSubstr("by the clock"));
}

TEST(PlantedFaults, AReplayThatDoesNothingFailsTheCase) {
  const CaseResult result =
      run_with("replay nothing", small_case(kLong), timed());
  EXPECT_THAT(with_outcome(result, Outcome::kFailed),
              UnorderedElementsAreArray(Names{"repeat", "wall time"}));
}

// A busy host delays a long replay at times; the tests above are the clock's.
Names failed_but_for_the_clock(const CaseResult& result) {
  Names failed = with_outcome(result, Outcome::kFailed);
  std::erase(failed, "wall time");
  return failed;
}

// The clock knows nothing of parts: what they must write does.
TEST(PlantedFaults, APartThatDoesNothingFailsTheCase) {
  for (const char* part : {"front", "key-and-query", "scoring", "selection"})
    EXPECT_THAT(
        failed_but_for_the_clock(run_with(std::string("replay no ") + part,
                                          small_case(kLong), timed())),
        Names{"repeat"})
        << part;
}

// One launch on an embedding, two dense ones, one behind a mixture of experts.
cases::Case model_case() {
  cases::Case item = small_case(kLong);
  item.order = "model";
  item.launches = 4;
  item.tp = 2;
  item.steps = 1;
  return item;
}

TEST(PlantedFaults, TheModelsOrderIsJudgedAndTimed) {
  const CaseResult result = run_with("", model_case(), timed());
  EXPECT_EQ(failed_but_for_the_clock(result), Names{}) << result.reason;
  EXPECT_EQ(result.times.size(), 6u);
  EXPECT_EQ(with_outcome(run_with("x", model_case()), Outcome::kFailed),
            Names{"x"});
}

TEST(PlantedFaults, AReplayOfTheLastLaunchAloneFailsTheModelsOrder) {
  const CaseResult result = run_with("replay one call", model_case(), timed());
  EXPECT_EQ(failed_but_for_the_clock(result), Names{"repeat"});
  EXPECT_THAT(result.reason, HasSubstr("launch 0 step 0 row 0"));
}

CaseResult run_beside(const std::string& peer, const std::string& fault) {
  setenv("EXACT_TOPK_FAULT_OF", EXACT_TOPK_BINARY_DIR "/lib/exact_topk_cpu.so",
         1);
  setenv("EXACT_TOPK_FAULT", fault.c_str(), 1);
  Settings how = timed();
  how.peers = {peer};
  const Group group = Group::of(1);
  SharedInputs weights(group);
  return run_case(small_case(kLong), 0, how, group, weights,
                  Library::open("cpu", how.timeout), nullptr);
}

TEST(Peers, AreTimedOnTheScoresOfTheLaunch) {
  const CaseResult result = run_beside(kTests + "faulty_candidate.so", "");
  EXPECT_EQ(failed_but_for_the_clock(result), Names{}) << result.reason;
  ASSERT_EQ(result.times.size(), 6u + 2 * 2);
  EXPECT_EQ(result.times[6].arm, "faulty_candidate/base");
  EXPECT_EQ(result.times[6].part, "selection");
  EXPECT_GT(result.times[6].wall, 0);
  EXPECT_EQ(result.times[9].arm, "faulty_candidate/twin");
  EXPECT_EQ(result.times[9].part, "empty");
}

TEST(Peers, AreHeldToWhatTheyPromise) {
  for (const char* fault :
       {"list duplicate", "list before the buffer", "input edited"})
    EXPECT_EQ(failed_but_for_the_clock(
                  run_beside(kTests + "faulty_candidate.so", fault)),
              Names{"peer"})
        << fault;
}

}  // namespace
}  // namespace exact_topk::harness
