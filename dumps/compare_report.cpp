// SPDX-License-Identifier: Apache-2.0
#include "dumps/compare_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace exact_topk::dumps {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kReportSchema = "exact-topk/compare/1";

std::string tensor_text(const TreeLeaf& leaf) {
  return fmt::format("{} [{}]", dtype_name(leaf.dtype),
                     fmt::join(leaf.shape, ", "));
}

std::string text_of(const Difference& difference) {
  const TreeLeaf& leaf = difference.leaf();
  std::string text = fmt::format("{}: {} (rank {} of its group)\n",
                                 difference_class(difference), leaf.leaf,
                                 leaf.info.rank_in_group);
  text += fmt::format("  repro: {}\n", leaf.info.repro);
  if (difference.one_sided()) return text;
  const TreeLeaf& b = *difference.b;
  if (b.info.repro != leaf.info.repro)
    text += fmt::format("  repro of B: {}\n", b.info.repro);
  if (tensor_text(leaf) != tensor_text(b)) {
    text +=
        fmt::format("  {} in A, {} in B\n", tensor_text(leaf), tensor_text(b));
  }
  if (const auto element = first_element(difference)) {
    text += fmt::format("  first at [{}]: {} ({}) in A, {} ({}) in B",
                        fmt::join(element->index, ", "), element->hex_a,
                        element->decimal_a, element->hex_b, element->decimal_b);
    text +=
        element->ulps ? fmt::format(", {} ulps apart\n", *element->ulps) : "\n";
  }
  return text;
}

ordered_json json_of(const Difference& difference) {
  const auto side = [](const TreeLeaf* leaf, auto field) {
    return leaf ? ordered_json(field(*leaf)) : ordered_json();
  };
  const auto repro = [](const TreeLeaf& leaf) { return leaf.info.repro; };
  ordered_json object = {
      {"class", difference_class(difference)},
      {"leaf", difference.leaf().leaf},
      {"rank_in_group", difference.leaf().info.rank_in_group},
      {"repro_a", side(difference.a, repro)},
      {"repro_b", side(difference.b, repro)},
      {"tensor_a", side(difference.a, tensor_text)},
      {"tensor_b", side(difference.b, tensor_text)},
      {"element", nullptr}};
  if (const auto element = first_element(difference)) {
    object["element"] = {
        {"index", element->index},         {"hex_a", element->hex_a},
        {"hex_b", element->hex_b},         {"decimal_a", element->decimal_a},
        {"decimal_b", element->decimal_b}, {"ulps", nullptr}};
    if (element->ulps) object["element"]["ulps"] = *element->ulps;
  }
  return object;
}

}  // namespace

std::string text_report(const Comparison& comparison, const Tree& a,
                        const Tree& b, bool all) {
  std::string text;
  for (const auto& [label, tree] : {std::pair("A", &a), std::pair("B", &b)}) {
    text += fmt::format("{} {}: {} leaves of {} ranks\n", label,
                        tree->path.string(), tree->leaves.size(), tree->ranks);
  }
  text += fmt::format("{:<8}{:>12}{:>12}{:>12}{:>12}{:>14}\n", "", "equal",
                      "differing", "only in A", "only in B", "not compared");
  for (const auto& [kind, counts] : comparison.kinds) {
    text +=
        fmt::format("{:<8}{:>12}{:>12}{:>12}{:>12}{:>14}\n",
                    leaf_kind_name(kind), counts.equal, counts.differing,
                    counts.only_in_a, counts.only_in_b, counts.not_compared);
  }
  if (const auto first = comparison.first_differing())
    text += "first difference, " + text_of(*first);
  if (const auto first = comparison.first_one_sided())
    text += "first one-sided leaf, " + text_of(*first);
  if (all) {
    for (const Difference& difference : comparison.differences)
      text += text_of(difference);
  }
  return text + (comparison.equal() ? "EQUAL\n" : "DIFFER\n");
}

ordered_json json_report(const Comparison& comparison, const Tree& a,
                         const Tree& b, bool all) {
  const auto optional = [](const auto& difference) {
    return difference ? json_of(*difference) : ordered_json();
  };
  ordered_json kinds;
  for (const auto& [kind, counts] : comparison.kinds) {
    kinds[std::string(leaf_kind_name(kind))] = {
        {"equal", counts.equal},
        {"differing", counts.differing},
        {"only_in_a", counts.only_in_a},
        {"only_in_b", counts.only_in_b},
        {"not_compared", counts.not_compared}};
  }
  ordered_json report = {
      {"schema", kReportSchema},
      {"verdict", comparison.equal() ? "equal" : "differ"},
      {"a", a.path.string()},
      {"b", b.path.string()},
      {"kinds", kinds},
      {"first_difference", optional(comparison.first_differing())},
      {"first_one_sided", optional(comparison.first_one_sided())}};
  if (all) {
    report["differences"] = ordered_json::array();
    for (const Difference& difference : comparison.differences)
      report["differences"].push_back(json_of(difference));
  }
  return report;
}

ordered_json json_not_comparable(std::string_view a, std::string_view b,
                                 std::string_view reason) {
  return {{"schema", kReportSchema},
          {"verdict", "not comparable"},
          {"a", a},
          {"b", b},
          {"reason", reason}};
}

}  // namespace exact_topk::dumps
