// SPDX-License-Identifier: Apache-2.0
//
// Where run_case puts the leaves of a digest tree: one writer a tree of this
// world rank. A run of two arms has two trees (SPEC section 8), and an input
// belongs to both.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "dumps/tree.h"

namespace exact_topk::harness {

class DumpSink {
 public:
  // `writers`: one an arm, by the arm's name.
  explicit DumpSink(
      std::map<std::string, dumps::RankWriter, std::less<>> writers)
      : writers_(std::move(writers)) {}

  // A leaf of one arm's launch; `leaf` is <case>/launch0/... (dumps/leaf.h).
  void add(std::string_view arm, std::string_view leaf,
           const dumps::Tensor& tensor, const dumps::LeafInfo& info);
  void finish();

 private:
  std::map<std::string, dumps::RankWriter, std::less<>> writers_;
};

}  // namespace exact_topk::harness
