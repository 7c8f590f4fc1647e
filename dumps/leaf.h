// SPDX-License-Identifier: Apache-2.0
//
// Names of the leaves of a digest tree (SPEC section 8), and what a name says.
//
//   <case>/launch0/in/<weight>.npy           input   read by a launch at every
//   step <case>/launch0/step0/in/<tensor>.npy     input   of one step
//   <case>/launch0/step1/row3/scores.npy     scores  of one row
//   <case>/launch0/step1/row3/list.npy       list    of one row
//
// <case> is a case name of cases/, with slashes of its own. <weight> and
// <tensor> may hold slashes too. A name is a relative path and is used as one:
// parts that are empty, "." or "..", backslashes and control characters (which
// sha256sum would escape) are no leaf name.
#pragma once

#include <string>
#include <string_view>

namespace exact_topk::dumps {

enum class LeafKind { input, scores, list };
inline constexpr LeafKind kLeafKinds[] = {LeafKind::input, LeafKind::scores,
                                          LeafKind::list};

// "input", "scores", "list": keys of COMPLETE and of reports.
std::string_view leaf_kind_name(LeafKind kind);

struct LeafName {
  std::string case_name;  // everything before /launchN
  int launch = 0;         // launch within the case
  int step = -1;  // step of the launch; -1 for what holds at every step, which
                  // comes before step 0
  int row = -1;   // row of the step; -1 for inputs, which come before row 0
  LeafKind kind = LeafKind::input;
};

// std::runtime_error naming the leaf where it has none of the four forms above.
LeafName parse_leaf(std::string_view leaf);

}  // namespace exact_topk::dumps
