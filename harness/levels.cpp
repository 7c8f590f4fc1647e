// SPDX-License-Identifier: Apache-2.0
#include "harness/levels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <vector>

namespace exact_topk::harness {
namespace {

using oracle::Contract;

constexpr std::array kLadder = {Contract::kValid,  Contract::kValues,
                                Contract::kSet,    Contract::kPosition,
                                Contract::kSorted, Contract::kBase};

uint32_t bit(Contract contract) { return 1u << static_cast<int>(contract); }

}  // namespace

void Levels::add(const oracle::ListVerdict& verdict) {
  ++lists;
  for (const Contract level : kLadder)
    if (!verdict.holds(level)) held &= ~bit(level);
}

void Levels::add(const Levels& other) {
  lists += other.lists;
  held &= other.held;
}

bool Levels::holds(Contract contract) const {
  return lists > 0 && (held & bit(contract)) != 0;
}

std::string to_string(const Levels& levels) {
  if (levels.lists == 0) return "";
  std::vector<std::string_view> held, highest;
  for (const Contract level : kLadder) {
    if (!levels.holds(level)) continue;
    held.push_back(oracle::to_string(level));
    // Each step of the chain replaces the one below; the orders stand side by
    // side above it.
    if (level <= Contract::kSet || highest.back() == "set") highest.clear();
    highest.push_back(held.back());
  }
  if (held.empty()) return "no level held";
  return fmt::format("highest {}; held: {}", fmt::join(highest, " and "),
                     fmt::join(held, " "));
}

}  // namespace exact_topk::harness
