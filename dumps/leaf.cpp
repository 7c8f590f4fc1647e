// SPDX-License-Identifier: Apache-2.0
#include "dumps/leaf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace exact_topk::dumps {
namespace {

constexpr std::string_view kSuffix = ".npy";

// The number of a part such as "launch3": digits only, no leading zeros, so
// that one thing has one name.
std::optional<int> numbered(std::string_view part, std::string_view word) {
  if (!part.starts_with(word)) return {};
  part.remove_prefix(word.size());
  int number = 0;
  const auto [end, error] =
      std::from_chars(part.data(), part.data() + part.size(), number);
  const bool whole = error == std::errc{} && end == part.data() + part.size();
  if (!whole || number < 0 || part.front() == '-' ||
      (part.size() > 1 && part.front() == '0'))
    return {};
  return number;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t slash; (slash = text.find('/')) != std::string_view::npos;
       text.remove_prefix(slash + 1)) {
    parts.push_back(text.substr(0, slash));
  }
  parts.push_back(text);
  return parts;
}

bool is_safe(std::string_view part) {
  return !part.empty() && part != "." && part != ".." &&
         std::none_of(part.begin(), part.end(), [](char c) {
           return c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
                  c == 0x7F;
         });
}

// What follows the case name: the parts from launchN on.
std::optional<LeafName> parse_tail(std::span<const std::string_view> parts) {
  LeafName name;
  const std::optional<int> launch = numbered(parts[0], "launch");
  if (!launch) return {};
  name.launch = *launch;
  parts = parts.subspan(1);
  if (const std::optional<int> step =
          parts.empty() ? std::nullopt : numbered(parts[0], "step")) {
    name.step = *step;
    parts = parts.subspan(1);
  }
  if (parts.size() < 2) return {};
  if (parts[0] == "in") return name;
  const std::optional<int> row = numbered(parts[0], "row");
  if (!row || name.step < 0 || parts.size() != 2) return {};
  name.row = *row;
  if (parts[1] == "scores.npy") {
    name.kind = LeafKind::scores;
  } else if (parts[1] == "list.npy") {
    name.kind = LeafKind::list;
  } else {
    return {};
  }
  return name;
}

}  // namespace

std::string_view leaf_kind_name(LeafKind kind) {
  switch (kind) {
    case LeafKind::input:
      return "input";
    case LeafKind::scores:
      return "scores";
    case LeafKind::list:
      return "list";
  }
  throw std::logic_error("no such leaf kind");
}

LeafName parse_leaf(std::string_view leaf) {
  const std::vector<std::string_view> parts = split(leaf);
  if (leaf.ends_with(kSuffix) && parts.back() != kSuffix &&
      std::all_of(parts.begin(), parts.end(), is_safe)) {
    // The first launchN ends the case name; tensors below in/ may be called
    // anything.
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (std::optional<LeafName> name =
              parse_tail(std::span(parts).subspan(i))) {
        name->case_name = leaf.substr(
            0, static_cast<std::size_t>(parts[i].data() - leaf.data()) - 1);
        return *std::move(name);
      }
    }
  }
  throw std::runtime_error(fmt::format("\"{}\" is no leaf name", leaf));
}

}  // namespace exact_topk::dumps
