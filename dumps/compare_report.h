// SPDX-License-Identifier: Apache-2.0
//
// What compare_dumps says of a comparison: a text for people and a JSON object
// for programs, the same facts in both.
//
// JSON: {"schema": "exact-topk/compare/1", "verdict": "equal|differ|not
// comparable", "a", "b", "kinds": {KIND: {"equal", "differing", "only_in_a",
// "only_in_b", "not_compared"}}, "first_difference": D or null,
// "first_one_sided": D or null, "differences": [D ...] (with --all)}. D is
// {"class", "leaf", "rank_in_group", "repro_a", "repro_b", "tensor_a",
// "tensor_b" (dtype and shape), "element": {"index", "hex_a", "hex_b",
// "decimal_a", "decimal_b", "ulps"} or null}; what the leaf's missing side
// would say is null. A tree that cannot be compared gives "schema", "verdict",
// "a", "b" and "reason".
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "dumps/compare.h"

namespace exact_topk::dumps {

// `all` adds every differing or one-sided leaf.
std::string text_report(const Comparison& comparison, const Tree& a,
                        const Tree& b, bool all);
nlohmann::ordered_json json_report(const Comparison& comparison, const Tree& a,
                                   const Tree& b, bool all);

// The report of a comparison that could not be made.
nlohmann::ordered_json json_not_comparable(std::string_view a,
                                           std::string_view b,
                                           std::string_view reason);

}  // namespace exact_topk::dumps
