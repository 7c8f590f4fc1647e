// SPDX-License-Identifier: Apache-2.0
#include "dumps/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "dumps/compare_report.h"
#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kCase0 = "kind=index/tp=2/pos=9";  // first in the list,
const std::string kCase1 = "kind=index/tp=2/pos=8";  // though not by name

// The leaf of that name, to be changed.
TestLeaf& leaf_in(RankLeaves& leaves, const std::string& name) {
  for (TestLeaf& leaf : leaves) {
    if (leaf.leaf == name) return leaf;
  }
  throw std::logic_error("no leaf " + name);
}

void flip(TestLeaf& leaf, std::size_t byte = 0) {
  leaf.data.at(byte) ^= std::byte{1};
}

class Compare : public testing::Test {
 protected:
  // Writes both trees and compares them; the trees outlive the comparison.
  const Comparison& compare(bool tensors = false) {
    for (const char* name : {"A", "B"}) fs::remove_all(folder_ / name);
    write_tree(folder_ / "A", a_, tensors);
    write_tree(folder_ / "B", b_, tensors);
    tree_a_ = read_tree(folder_ / "A");
    tree_b_ = read_tree(folder_ / "B");
    comparison_ = compare_trees(tree_a_, tree_b_);
    return comparison_;
  }
  // "CLASS LEAF RANK" of the first pair that differs.
  std::string first() const {
    const auto difference = comparison_.first_differing();
    if (!difference) return "none";
    return fmt::format("{} {} {}", difference_class(*difference),
                       difference->leaf().leaf,
                       difference->leaf().info.rank_in_group);
  }
  std::string counts(LeafKind kind) const {
    const KindCounts& c = comparison_.kinds.at(kind);
    return fmt::format("{} {} {} {} {}", c.equal, c.differing, c.only_in_a,
                       c.only_in_b, c.not_compared);
  }

  TempDir folder_;
  std::vector<RankLeaves> a_ = two_ranks();
  std::vector<RankLeaves> b_ = two_ranks();
  Tree tree_a_, tree_b_;
  Comparison comparison_;
};

TEST_F(Compare, EqualTrees) {
  EXPECT_TRUE(compare().equal());
  EXPECT_EQ(counts(LeafKind::input), "4 0 0 0 0");
  EXPECT_EQ(counts(LeafKind::scores), "8 0 0 0 0");
  EXPECT_EQ(counts(LeafKind::list), "8 0 0 0 0");
  EXPECT_EQ(first(), "none");
}

TEST_F(Compare, EachClass) {
  flip(leaf_in(b_[1], kCase1 + "/launch0/step0/row2/list.npy"));
  EXPECT_FALSE(compare().equal());
  EXPECT_EQ(counts(LeafKind::list), "7 1 0 0 0");
  EXPECT_EQ(first(), "list differs, scores equal " + kCase1 +
                         "/launch0/step0/row2/list.npy 1");

  flip(leaf_in(b_[1], kCase1 + "/launch0/step0/row2/scores.npy"));
  compare();
  EXPECT_EQ(counts(LeafKind::scores), "7 1 0 0 0");
  EXPECT_EQ(first(),
            "scores differ " + kCase1 + "/launch0/step0/row2/scores.npy 1");
  // Of the list it is no longer true that its scores are equal.
  EXPECT_EQ(difference_class(comparison_.differences[1]), "list differs");

  flip(leaf_in(b_[0], kCase1 + "/launch0/in/wk.npy"));
  compare();
  EXPECT_EQ(counts(LeafKind::input), "3 1 0 0 0");
  EXPECT_EQ(first(), "inputs differ " + kCase1 + "/launch0/in/wk.npy 0");
}

// Everything differs, then one more leaf at a time is made equal again: what is
// first walks through the whole order of execution.
TEST_F(Compare, FirstIsFirstInExecutionOrder) {
  std::vector<std::string> order;
  for (const std::string& name : {kCase0, kCase1}) {
    order.push_back(name + "/launch0/in/wk.npy 0");
    order.push_back(name + "/launch0/step0/in/cache.npy 0");
    for (const char* row : {"row2", "row10"}) {  // as numbers, not as text
      for (const char* tensor : {"scores", "list"}) {
        for (const int rank : {0, 1}) {
          order.push_back(fmt::format("{}/launch0/step0/{}/{}.npy {}", name,
                                      row, tensor, rank));
        }
      }
    }
  }
  for (RankLeaves& leaves : b_) {
    for (TestLeaf& leaf : leaves) flip(leaf);
  }
  for (const std::string& next : order) {
    compare();
    EXPECT_TRUE(first().ends_with(" " + next)) << first() << " for " << next;
    const std::size_t rank = next.ends_with(" 1") ? 1 : 0;
    flip(leaf_in(b_[rank], next.substr(0, next.size() - 2)));
  }
  EXPECT_TRUE(compare().equal());
}

TEST_F(Compare, LaunchesAndStepsAreOrderedAsNumbers) {
  const auto tree = [](float value) {
    RankLeaves leaves;
    for (const char* name :
         {"launch10/step0/row0/scores.npy", "launch2/step10/row0/scores.npy",
          "launch2/step9/row7/scores.npy", "launch2/step9/in/x.npy"}) {
      leaves.push_back(leaf_of<float>(std::string("c/") + name, {value}));
    }
    return std::vector<RankLeaves>{leaves};
  };
  a_ = tree(1);
  b_ = tree(2);
  compare();
  std::vector<std::string> seen;
  for (const Difference& d : comparison_.differences) {
    seen.push_back(d.leaf().leaf);
  }
  EXPECT_THAT(seen, testing::ElementsAre("c/launch2/step9/in/x.npy",
                                         "c/launch2/step9/row7/scores.npy",
                                         "c/launch2/step10/row0/scores.npy",
                                         "c/launch10/step0/row0/scores.npy"));
}

// Lines that were put in another order, and signed again: the digests agree,
// and what is first to differ would be anybody's guess.
TEST_F(Compare, AnotherOrderIsNotComparable) {
  for (std::size_t i = 0; i + 1 < b_[0].size(); ++i) {
    if (b_[0][i].info.case_index != b_[0][i + 1].info.case_index) continue;
    std::swap(b_[0][i], b_[0][i + 1]);
    EXPECT_THAT(
        error_of([&] { compare(); }),
        testing::HasSubstr("their orders of execution part at " +
                           b_[0][i + 1].leaf + " and " + b_[0][i].leaf));
    std::swap(b_[0][i], b_[0][i + 1]);
  }
  // A leaf that one of them lacks changes no order.
  b_[0].erase(b_[0].begin());
  EXPECT_EQ(compare().differences.size(), 1u);
}

// The cases of a tree lie on several ranks when groups share them; the list's
// order is that of the case index, not of ranks or names.
TEST_F(Compare, CasesAreOrderedAsListedAcrossGroups) {
  const auto leaf = [](int index, float value) {
    return leaf_of<float>(
        fmt::format("case{}/launch0/step0/row0/scores.npy", 9 - index), {value},
        {.repro = "r", .case_index = index});
  };
  a_ = {{leaf(1, 1), leaf(3, 1)}, {leaf(2, 1), leaf(0, 1)}};
  b_ = {{leaf(3, 2)}, {leaf(2, 2)}, {leaf(1, 2)}, {leaf(0, 2)}};
  compare();
  ASSERT_EQ(comparison_.differences.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(comparison_.differences[at].leaf().info.case_index, i);
  }
}

TEST_F(Compare, AOneSidedLeafIsADifference) {
  b_[0].pop_back();
  a_[1].pop_back();
  EXPECT_FALSE(compare().equal());
  EXPECT_EQ(counts(LeafKind::list), "6 0 1 1 0");
  EXPECT_EQ(first(), "none");
  const Difference difference = comparison_.first_one_sided().value();
  EXPECT_EQ(difference_class(difference), "only in A");
  EXPECT_EQ(difference.leaf().info.rank_in_group, 0);
  EXPECT_EQ(difference_class(comparison_.differences[1]), "only in B");
}

TEST_F(Compare, AListWithOneSidedScoresIsNotSaidToHaveEqualScores) {
  flip(leaf_in(b_[0], kCase0 + "/launch0/step0/row2/list.npy"));
  std::erase_if(b_[0], [](const TestLeaf& leaf) {
    return leaf.leaf == kCase0 + "/launch0/step0/row2/scores.npy";
  });
  compare();
  EXPECT_EQ(first(),
            "list differs " + kCase0 + "/launch0/step0/row2/list.npy 0");
}

TEST_F(Compare, ACaseThatOneTreeLacksIsOneSidedOnEveryRank) {
  for (RankLeaves& leaves : b_) {
    std::erase_if(leaves, [](const TestLeaf& leaf) {
      return leaf.leaf.starts_with(kCase0);
    });
  }
  compare();
  EXPECT_EQ(counts(LeafKind::scores), "4 0 4 0 0");
  EXPECT_EQ(counts(LeafKind::input), "2 0 2 0 0");
}

// One rank that emulates the group against the two real ones.
TEST_F(Compare, AnEmulatedGroupComparesWithRankZero) {
  b_.pop_back();
  for (TestLeaf& leaf : b_[0]) leaf.info.group_ranks = 1;
  EXPECT_TRUE(compare().equal());
  EXPECT_EQ(counts(LeafKind::input), "4 0 0 0 0");
  EXPECT_EQ(counts(LeafKind::scores), "4 0 0 0 4");
  std::swap(a_, b_);
  EXPECT_TRUE(compare().equal());
  EXPECT_EQ(counts(LeafKind::scores), "4 0 0 0 4");
  flip(leaf_in(a_[0], kCase1 + "/launch0/step0/row2/scores.npy"));
  EXPECT_FALSE(compare().equal());
  EXPECT_EQ(counts(LeafKind::scores), "3 1 0 0 4");
}

// A rank that ran but lost its leaves is no emulation.
TEST_F(Compare, ARankThatLostEveryLeafIsSeen) {
  b_[1].clear();
  EXPECT_FALSE(compare().equal());
  EXPECT_EQ(counts(LeafKind::scores), "4 0 4 0 0");
}

TEST_F(Compare, AnotherShapeOrDtypeOfTheSameBytesDiffers) {
  TestLeaf& leaf = leaf_in(b_[0], kCase0 + "/launch0/step0/row2/scores.npy");
  leaf.shape = {1, 3};
  compare(true);
  EXPECT_EQ(first(), "scores differ " + leaf.leaf + " 0");
  EXPECT_FALSE(first_element(*comparison_.first_differing()).has_value());
  EXPECT_THAT(text_report(comparison_, tree_a_, tree_b_, false),
              HasSubstr("f32 [3] in A, f32 [1, 3] in B"));
  leaf.shape = {3};
  leaf.dtype = Dtype::i32;
  EXPECT_FALSE(compare().equal());
}

TEST_F(Compare, OtherIdentitiesAreRefused) {
  write_tree(folder_ / "A", a_);
  write_tree(folder_ / "seed", b_, false, test_run(2));
  nlohmann::json run = test_run();
  run["geometry"]["k"] = 1024;
  write_tree(folder_ / "geometry", b_, false, run);
  run = test_run();
  run["commit"] = "1111111";
  run["options"] = "--arm head";
  run["device"] = "nvidia";
  run["schedule"] = "reverse";
  write_tree(folder_ / "other", b_, false, run);

  const Tree tree = read_tree(folder_ / "A");
  const auto refusal = [&](const char* name) {
    const Tree other = read_tree(folder_ / name);
    return error_of([&] { compare_trees(tree, other); });
  };
  EXPECT_THAT(refusal("seed"),
              HasSubstr("are not comparable: their seed is 1 and 2"));
  EXPECT_THAT(refusal("geometry"),
              HasSubstr("their geometry is {\"k\":2048,\"name\":\"glm53\"} and "
                        "{\"k\":1024,\"name\":\"glm53\"}"));
  const Tree other = read_tree(folder_ / "other");
  EXPECT_TRUE(compare_trees(tree, other).equal());
}

template <typename T>
ElementDifference element_of(Dtype dtype, std::vector<std::int64_t> shape,
                             std::vector<T> a, std::vector<T> b) {
  return first_difference(dtype, shape, std::as_bytes(std::span(a)),
                          std::as_bytes(std::span(b)))
      .value();
}

TEST(Element, FloatsInHexDecimalAndUlps) {
  // 0x3F800000 and the next but one above.
  const auto f = element_of<float>(Dtype::f32, {4}, {0, 1, 1, 9},
                                   {0, 1, 1.0f + 0x1p-22f, 8});
  EXPECT_EQ(f.index, std::vector<std::int64_t>{2});
  EXPECT_EQ(f.hex_a, "0x3f800000");
  EXPECT_EQ(f.hex_b, "0x3f800002");
  EXPECT_EQ(f.decimal_a, "1");
  EXPECT_EQ(f.decimal_b, "1.00000024");
  EXPECT_EQ(f.ulps, 2u);
  // -0.0 is one step below +0.0; the smallest subnormals two more apart.
  EXPECT_EQ(element_of<float>(Dtype::f32, {1}, {0.0f}, {-0.0f}).ulps, 1u);
  EXPECT_EQ(element_of<float>(Dtype::f32, {1}, {0x1p-149f}, {-0x1p-149f}).ulps,
            3u);
  const auto d = element_of<double>(Dtype::f64, {}, {0.5}, {0.5 + 0x1p-53});
  EXPECT_TRUE(d.index.empty());
  EXPECT_EQ(d.hex_b, "0x3fe0000000000001");
  EXPECT_EQ(d.decimal_b, "0.50000000000000011");
  EXPECT_EQ(d.ulps, 1u);
  const auto h = element_of<std::uint16_t>(Dtype::bf16, {2}, {0x3F80, 0x4000},
                                           {0x3F80, 0xC000});
  EXPECT_EQ(h.hex_a, "0x4000");
  EXPECT_EQ(h.decimal_b, "-2");
  EXPECT_EQ(h.ulps, 0x8001u);  // 0x4000 steps to each zero, one between them
}

TEST(Element, IntegersHaveNoUlps) {
  const auto i = element_of<std::int32_t>(
      Dtype::i32, {2, 3}, {0, 1, 2, 3, -4, 5}, {0, 1, 2, 3, 4, 0});
  EXPECT_EQ(i.index, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(i.hex_a, "0xfffffffc");
  EXPECT_EQ(i.decimal_a, "-4");
  EXPECT_FALSE(i.ulps.has_value());
  const auto u = element_of<std::uint8_t>(Dtype::u8, {1}, {255}, {0});
  EXPECT_EQ(u.hex_a, "0xff");
  EXPECT_EQ(u.hex_b, "0x00");
  EXPECT_EQ(u.decimal_a, "255");
  EXPECT_FALSE(u.ulps.has_value());
}

TEST(Element, EqualBytesHaveNone) {
  const std::vector<float> v = {1, 2};
  const auto bytes = std::as_bytes(std::span(v));
  EXPECT_FALSE(
      first_difference(Dtype::f32, std::vector<std::int64_t>{2}, bytes, bytes));
}

TEST_F(Compare, TheFirstElementIsShownWhereBothHaveTensors) {
  TestLeaf& leaf = leaf_in(b_[0], kCase0 + "/launch0/step0/row10/scores.npy");
  leaf = leaf_of<float>(leaf.leaf, {1.0f, 2.0f, -3.0f}, leaf.info);
  compare(true);
  const auto element = first_element(comparison_.first_differing().value());
  ASSERT_TRUE(element.has_value());
  EXPECT_EQ(element->index, std::vector<std::int64_t>{2});
  EXPECT_THAT(text_report(comparison_, tree_a_, tree_b_, false),
              HasSubstr("first at [2]: 0x40400000 (3) in A, 0xc0400000 (-3) in "
                        "B, 2155872257 ulps apart"));
  compare(false);
  EXPECT_FALSE(first_element(*comparison_.first_differing()).has_value());
}

// A tensor file that agrees with every digest but is not what its line says.
TEST_F(Compare, ATensorThatIsNotItsLineIsRefused) {
  flip(leaf_in(b_[0], kCase0 + "/launch0/in/wk.npy"));
  compare(true);
  const fs::path tensor = comparison_.first_differing()->a->tensor;
  write_text(tensor, read_text(tensor) + "x");
  EXPECT_THAT(error_of([&] { first_element(*comparison_.first_differing()); }),
              HasSubstr("wk.npy is not the bf16 tensor that its line"));
}

TEST_F(Compare, TheReportsSayTheSame) {
  flip(leaf_in(b_[0], kCase0 + "/launch0/step0/row2/list.npy"));
  flip(leaf_in(b_[1], kCase1 + "/launch0/step0/row2/list.npy"));
  b_[1].pop_back();
  for (TestLeaf& leaf : b_[0]) leaf.info.repro = "check_topk --arm head";
  compare(true);
  const auto report = json_report(comparison_, tree_a_, tree_b_, true);
  EXPECT_EQ(report["schema"], "exact-topk/compare/1");
  EXPECT_EQ(report["verdict"], "differ");
  EXPECT_EQ(report["kinds"]["list"]["equal"], 5);
  EXPECT_EQ(report["kinds"]["list"]["differing"], 2);
  EXPECT_EQ(report["kinds"]["list"]["only_in_a"], 1);
  EXPECT_EQ(report["kinds"]["list"]["only_in_b"], 0);
  EXPECT_EQ(report["kinds"]["scores"]["not_compared"], 0);
  const auto& first = report["first_difference"];
  EXPECT_EQ(first["class"], "list differs, scores equal");
  EXPECT_EQ(first["leaf"], kCase0 + "/launch0/step0/row2/list.npy");
  EXPECT_EQ(first["rank_in_group"], 0);
  EXPECT_EQ(first["repro_a"], "check_topk --pos 9");
  EXPECT_EQ(first["repro_b"], "check_topk --arm head");
  EXPECT_EQ(first["tensor_a"], "i32 [3]");
  EXPECT_EQ(first["element"]["index"], nlohmann::json::array({0}));
  EXPECT_EQ(first["element"]["hex_a"], "0x00000042");
  EXPECT_EQ(first["element"]["decimal_b"], "67");
  EXPECT_TRUE(first["element"]["ulps"].is_null());
  EXPECT_EQ(report["first_one_sided"]["class"], "only in A");
  EXPECT_TRUE(report["first_one_sided"]["tensor_b"].is_null());
  EXPECT_EQ(report["differences"].size(), 3u);
  EXPECT_FALSE(json_report(comparison_, tree_a_, tree_b_, false)
                   .contains("differences"));

  const std::string text = text_report(comparison_, tree_a_, tree_b_, true);
  EXPECT_THAT(text, HasSubstr("first difference, list differs, scores equal: " +
                              kCase0 + "/launch0/step0/row2/list.npy (rank 0"));
  EXPECT_THAT(text, HasSubstr("repro: check_topk --pos 9\n"));
  EXPECT_THAT(text, HasSubstr("repro of B: check_topk --arm head\n"));
  EXPECT_THAT(text, HasSubstr("first one-sided leaf, only in A: " + kCase1));
  EXPECT_THAT(text, HasSubstr(kCase1 + "/launch0/step0/row2/list.npy (rank 1"));
  EXPECT_THAT(text, testing::EndsWith("DIFFER\n"));
}

}  // namespace
}  // namespace exact_topk::dumps
