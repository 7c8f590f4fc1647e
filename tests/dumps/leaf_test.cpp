// SPDX-License-Identifier: Apache-2.0
#include "dumps/leaf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dumps/support.h"

namespace exact_topk::dumps {
namespace {

TEST(Leaf, EveryFormIsRead) {
  const LeafName weight = parse_leaf("kind=index/pos=9/launch1/in/wq_b.npy");
  EXPECT_EQ(weight.case_name, "kind=index/pos=9");
  EXPECT_EQ(weight.launch, 1);
  EXPECT_EQ(weight.step, -1);
  EXPECT_EQ(weight.row, -1);
  EXPECT_EQ(weight.kind, LeafKind::input);

  const LeafName tensor = parse_leaf("c/launch0/step12/in/poison/keys.npy");
  EXPECT_EQ(tensor.case_name, "c");
  EXPECT_EQ(tensor.step, 12);
  EXPECT_EQ(tensor.row, -1);
  EXPECT_EQ(tensor.kind, LeafKind::input);

  const LeafName scores = parse_leaf("c/launch0/step1/row3/scores.npy");
  EXPECT_EQ(scores.step, 1);
  EXPECT_EQ(scores.row, 3);
  EXPECT_EQ(scores.kind, LeafKind::scores);
  EXPECT_EQ(parse_leaf("c/launch0/step1/row3/list.npy").kind, LeafKind::list);
}

TEST(Leaf, AnInputMayBeCalledScores) {
  // Below in/ everything is an input, whatever it is called.
  EXPECT_EQ(parse_leaf("c/launch0/step0/in/scores.npy").kind, LeafKind::input);
  const LeafName nested =
      parse_leaf("c/launch0/in/launch1/step0/row1/scores.npy");
  EXPECT_EQ(nested.kind, LeafKind::input);
  EXPECT_EQ(nested.case_name, "c");
}

TEST(Leaf, OtherNamesAreRefused) {
  for (const char* name : {"",
                           "c",
                           "c/launch0",
                           "c/launch0/in",
                           "launch0/in/x.npy",
                           "c/launch0/step0/row0/scores",
                           "c/launch0/step0/row0/other.npy",
                           "c/launch0/row0/scores.npy",
                           "c/launch0/step0/row/scores.npy",
                           "c/launch0/step0/row-1/scores.npy",
                           "c/launch00/in/x.npy",
                           "c/launch0/step+1/in/x.npy",
                           "/c/launch0/in/x.npy",
                           "c//launch0/in/x.npy",
                           "c/../launch0/in/x.npy",
                           "c/./launch0/in/x.npy",
                           "c/launch0/in/.npy",
                           "c/launch0/in/a\\b.npy",
                           "c/launch0/in/a\nb.npy",
                           "c/launch0/step0/row1/scores.npy/x.npy",
                           "c/launch99999999999/in/x.npy",
                           "c/launch0/step0/row1/in/x.npy"}) {
    EXPECT_THROW(parse_leaf(name), std::runtime_error) << name;
  }
  EXPECT_EQ(error_of([] { parse_leaf("c/x.npy"); }),
            "\"c/x.npy\" is no leaf name");
}

TEST(Leaf, KindsHaveNames) {
  EXPECT_EQ(leaf_kind_name(LeafKind::input), "input");
  EXPECT_EQ(leaf_kind_name(LeafKind::scores), "scores");
  EXPECT_EQ(leaf_kind_name(LeafKind::list), "list");
}

}  // namespace
}  // namespace exact_topk::dumps
