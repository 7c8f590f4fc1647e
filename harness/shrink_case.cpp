// SPDX-License-Identifier: Apache-2.0
#include "harness/shrink_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "cases/families.h"
#include "harness/abi.h"
#include "harness/case_context.h"
#include "harness/open_candidate.h"
#include "harness/selection.h"
#include "harness/shrink.h"

namespace exact_topk::harness {
namespace {

// A row of 8,000 keys takes about two calls a key; longer rows stay longer.
constexpr int64_t kMostCalls = 20'000;

// The list of one row alone, as the candidate left it; empty where the call
// failed.
std::vector<int32_t> select_row(Candidate& candidate, const std::string& arm,
                                std::span<const float> scores, int k,
                                uint64_t seed) {
  const auto n = int32_t(scores.size());
  Selection selection(
      {{scores.begin(), scores.end()}, {0}, {n}, {0}, std::min(n, k)}, {}, k);
  try {
    selection.call(candidate, arm, {seed, 0, 0, 0});
  } catch (const CandidateError& error) {
    if (error.status != XTK_FAILED) throw;
    return {};
  }
  return {selection.list(0).begin(), selection.list(0).end()};
}

// The file: safetensors of one row.
std::string capture_of(const SmallRow& row, const nlohmann::json& metadata) {
  const auto n = int32_t(row.scores.size());
  std::vector<int32_t> list = row.list;
  list.resize(size_t(row.k), -1);
  nlohmann::json header{{"__metadata__", metadata}};
  std::string data;
  const auto add = [&](const char* name, const char* dtype,
                       std::vector<int64_t> shape, const auto& elements) {
    const auto bytes = std::as_bytes(std::span(elements));
    header[name] = {
        {"dtype", dtype},
        {"shape", std::move(shape)},
        {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  add("scores", "F32", {1, n}, row.scores);
  add("lengths", "I32", {1}, std::vector<int32_t>{n});
  add("topk", "I32", {1, row.k}, list);
  // Of a path in the line that is not UTF-8, what is.
  const std::string text =
      header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

}  // namespace

std::optional<Shrunk> shrink_case(const cases::Case& item,
                                  const std::string& repro,
                                  const Settings& settings,
                                  const Library& library) {
  const cases::SelectRows rows = cases::select_rows(item, settings.seed);
  Candidate candidate(library,
                      abi_select_options(item, item.pos + 1, rows.list_entries,
                                         settings, library.describe()));
  const ShrinkRules rules{contract_of(settings, claimed_contract(library)),
                          settings.values, kMostCalls};
  const std::string& arm = settings.arms.front();
  const RowSelector selector = [&](std::span<const float> scores, int k) {
    return select_row(candidate, arm, scores, k, settings.seed);
  };
  const int k = item.geometry.k;
  for (size_t r = 0; r < rows.lengths.size(); ++r) {
    const SmallRow small = shrink_row(
        std::span(rows.scores)
            .subspan(size_t(rows.row_start[r]), size_t(rows.lengths[r])),
        k, rules, selector);
    if (small.list.empty()) continue;
    const std::string contract(oracle::to_string(rules.contract));
    return Shrunk{
        fmt::format("row {} of n {} and k {} to n {}, k {} and {} distinct "
                    "scores, in {} calls of the candidate",
                    r, rows.lengths[r], k, small.scores.size(), small.k,
                    small.distinct, small.calls),
        capture_of(small, {{"contract", contract},
                           {"entries", "position"},
                           {"made by", repro}})};
  }
  return std::nullopt;
}

}  // namespace exact_topk::harness
