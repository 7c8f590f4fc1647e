// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "cases/caches.h"
#include "cases/families.h"
#include "cases/rowsets.h"
#include "tests/cases/support.h"

namespace exact_topk::cases {
namespace {

using testing::ElementsAre;

TEST(Names, OfALaunchIsSpecsExample) {
  const Case c = case_of("--rows 4 --cache ties --rowset chain --pos 131071");
  EXPECT_EQ(name(c),
            "kind=index/tp=8/rows=4/cache=ties/rowset=chain/pos=131071");
  EXPECT_EQ(input_name(c),
            "kind=index/rows=4/cache=ties/rowset=chain/pos=131071");
}

TEST(Names, SayEverythingThatIsNotDefault) {
  EXPECT_EQ(
      name(case_of("--kind dense --rows 2 --cache zeros --rowset mixed --pos 5 "
                   "--geometry dsv32 --rope interleaved "
                   "--hadamard off --scale f32 --fp8 e4m3fnuz --page-layout "
                   "preshuffled16 --k 7 --launches 1 --steps 3 --tp 2")),
      "kind=dense/tp=2/rows=2/cache=zeros/rowset=mixed/pos=5/geometry=dsv32/"
      "rope=interleaved/hadamard=off/scale=f32/"
      "fp8=e4m3fnuz/page-layout=preshuffled16/k=7/launches=1/steps=3");
  EXPECT_EQ(
      name(case_of("--stage score --fill integers --rows 2 --cache random "
                   "--rowset chain")),
      "rows=2/cache=random/rowset=chain/pos=8447/stage=score/fill=integers");
  EXPECT_EQ(
      name(case_of("--stage select --rows-from rising --rows 2 --pos 99")),
      "rows=2/pos=99/stage=select/family=rising");
}

TEST(Names, OfTheModelsOrderHaveNoKindAndTwentyOneLaunches) {
  const Case c = case_of("--order model --rows 4 --cache ties --rowset chain");
  EXPECT_EQ(name(c),
            "tp=8/rows=4/cache=ties/rowset=chain/pos=8447/order=model");
  EXPECT_EQ(c.launches, 21);
  EXPECT_EQ(name(case_of("--order model --rows 4 --cache ties --rowset chain "
                         "--launches 2")),
            "tp=8/rows=4/cache=ties/rowset=chain/pos=8447/launches=2/"
            "order=model");
}

TEST(Names, LeaveOutValuesThatAreTheGeometrysOwn) {
  EXPECT_EQ(name(case_of("--rows 4 --cache ties --rowset chain --rope "
                         "interleaved --hadamard on --scale ue8m0 --fp8 e4m3fn "
                         "--page-layout plain --k 2048 --launches 2 --steps 2 "
                         "--geometry glm53")),
            "kind=index/tp=8/rows=4/cache=ties/rowset=chain/pos=8447");
  EXPECT_EQ(
      name(case_of("--rows 4 --cache ties --rowset chain --geometry dsv32 "
                   "--rope half-split")),
      "kind=index/tp=8/rows=4/cache=ties/rowset=chain/pos=8447/geometry=dsv32");
}

TEST(Names, ReproIsMinimal) {
  EXPECT_THAT(repro_arguments(case_of("--rows 4 --cache ties --rowset chain")),
              ElementsAre("--tp", "8", "--rows", "4", "--cache", "ties",
                          "--rowset", "chain"));
  EXPECT_THAT(
      repro_arguments(case_of("--kind embed --rows 4 --cache ties --rowset "
                              "chain --pos 1 --steps 1")),
      ElementsAre("--kind", "embed", "--tp", "8", "--rows", "4", "--cache",
                  "ties", "--rowset", "chain", "--pos", "1", "--steps", "1"));
  EXPECT_THAT(
      repro_arguments(case_of("--stage select --rows-from rising --rows 2")),
      ElementsAre("--rows", "2", "--stage", "select", "--rows-from", "rising"));
}

TEST(Names, FilterMatchesTheWholeNameAcrossSlashes) {
  const std::string text =
      "kind=index/tp=8/rows=4/cache=ties/rowset=chain/pos=131071";
  EXPECT_TRUE(matches("*cache=ties*", text));
  EXPECT_TRUE(matches("kind=*/pos=131071", text));
  EXPECT_TRUE(matches("*rows=[24]/*", text));
  EXPECT_FALSE(matches("cache=ties", text));
  EXPECT_FALSE(matches("*pos=13107", text));
}

template <typename Value>
Value one_of(const std::vector<Value>& values) {
  return *rc::gen::elementOf(values);
}

TEST(Names, ReproOfAnyCaseGivesThatCaseAlone) {
  const bool held = rc::check("expand(repro(case)) == {case}", [] {
    CaseOptions o;
    const Stage stage =
        one_of<Stage>({Stage::kLaunch, Stage::kScore, Stage::kSelect});
    o.stage = stage;
    const auto maybe = [](auto& option, const auto& values) {
      if (*rc::gen::arbitrary<bool>()) option = one_of(values);
    };
    o.rows = {*rc::gen::inRange(1, 9)};
    o.positions = {*rc::gen::inRange<int64_t>(0, kMaxKeys - 600)};
    if (*rc::gen::arbitrary<bool>())
      o.k = {one_of(std::vector<int>{1, 7, 2047, 2048})};
    if (stage == Stage::kSelect) {
      o.families = {one_of(family_names())};
      if (*rc::gen::arbitrary<bool>()) o.positions.clear();
    } else {
      o.caches = {std::string(
          caches()[*rc::gen::inRange<size_t>(0, caches().size())].name)};
      o.rowsets = {std::string(
          row_sets()[*rc::gen::inRange<size_t>(0, row_sets().size())].name)};
      maybe(o.geometry, std::vector<std::string>{"glm53", "glm51", "dsv32"});
      maybe(o.rope, std::vector<oracle::Rope>{oracle::Rope::kInterleaved,
                                              oracle::Rope::kHalfSplit});
      if (*rc::gen::arbitrary<bool>()) o.hadamard = *rc::gen::arbitrary<bool>();
      maybe(o.scale, std::vector<oracle::Scale>{oracle::Scale::kUe8m0,
                                                oracle::Scale::kF32});
      maybe(o.fp8, std::vector<oracle::Fp8>{oracle::Fp8::kE4m3fn,
                                            oracle::Fp8::kE4m3fnuz});
      maybe(o.page_layout, std::vector<oracle::PageLayout>{
                               oracle::PageLayout::kPlain,
                               oracle::PageLayout::kPreshuffled16});
      if (stage == Stage::kScore && *rc::gen::arbitrary<bool>())
        o.fill = "integers";
    }
    if (stage == Stage::kLaunch && *rc::gen::arbitrary<bool>()) {
      o.order = "model";
      maybe(o.launches, std::vector<int>{1, 2, 21});
    } else if (stage == Stage::kLaunch) {
      o.kinds = {one_of<Kind>({Kind::kIndex, Kind::kDense, Kind::kEmbed})};
      maybe(o.tp, std::vector<int>{1, 2, 4, 8});
      maybe(o.launches, std::vector<int>{1, 2, 3});
      maybe(o.steps, std::vector<int>{1, 2, 64});
    }
    const std::vector<Case> cases = expand(o, 4);
    RC_ASSERT(cases.size() == 1u);
    // Another default T than the one at the time.
    const std::vector<Case> again =
        expand(parse_case_options(repro_arguments(cases[0])), 2);
    RC_ASSERT(again.size() == 1u);
    RC_ASSERT(again[0] == cases[0]);
    RC_ASSERT(name(again[0]) == name(cases[0]));
  });
  EXPECT_TRUE(held);
}

TEST(Names, DefaultsAreEveryCacheAndRowSetAtTwoWidths) {
  const std::vector<Case> cases = cases_of("--pos 8447 --kind index", 4);
  EXPECT_EQ(cases.size(), 2u * 5 * 4);
  EXPECT_EQ(cases_of("", 4), cases);
  std::set<std::string> names;
  for (const Case& c : cases) names.insert(name(c));
  EXPECT_EQ(names.size(), cases.size());
  EXPECT_TRUE(names.contains(
      "kind=index/tp=4/rows=2/cache=narrow/rowset=padded/pos=8447"));
}

TEST(Names, ACaseNamedTwiceRunsOnce) {
  EXPECT_EQ(
      cases_of("--rows 2,2 --cache ties,ties --rowset chain --pos 5,5").size(),
      1u);
}

}  // namespace
}  // namespace exact_topk::cases
