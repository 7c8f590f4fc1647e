// SPDX-License-Identifier: Apache-2.0
#include "cases/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cases/families.h"
#include "cases/generator.h"
#include "cases/inputs.h"
#include "cases/list_layout.h"
#include "cases/rowsets.h"
#include "oracle/geometry.h"

namespace exact_topk::cases {
namespace {

using oracle::kPageTokens;

constexpr int kStaleColumns =
    5;  // table columns past the longest row's last page
constexpr int64_t kRecentKeys = 4096;  // SPEC section 5, cache `recent`
constexpr int64_t kScoreGuard =
    64;  // least f32 between one row's last score and the next row

// A request's pages over all steps.
struct Request {
  int rows = 0;  // rows of a step, those before position 0 included
  int64_t first =
      INT64_MAX;  // least live position on step 0: keys before it are cached
  int64_t last = -1;           // greatest position on the last step
  int64_t shared = 0;          // first pages that are request 0's
  std::vector<int32_t> table;  // page ids
};

int64_t pages_to(int64_t position) { return position / kPageTokens + 1; }

std::vector<Request> requests_of(const std::vector<PlacedRow>& placed,
                                 int steps) {
  std::vector<Request> requests;
  for (const PlacedRow& row : placed) {
    if (row.request < 0) continue;
    requests.resize(
        std::max(requests.size(), static_cast<size_t>(row.request) + 1));
    Request& request = requests[static_cast<size_t>(row.request)];
    ++request.rows;
    if (row.position >= 0)
      request.first = std::min(request.first, row.position);
    request.last = std::max(request.last, row.position);
    request.shared = row.shared_pages;
  }
  for (Request& request : requests)
    request.last += int64_t{steps - 1} * request.rows;
  return requests;
}

// Gives every request its pages from a seeded permutation, some ids left over.
// Returns the number of pages, page 0 included.
int deal_pages(std::vector<Request>& requests, const Stream& stream) {
  int64_t needed = 0;
  for (const Request& request : requests)
    if (request.last >= 0) needed += pages_to(request.last) - request.shared;
  const int64_t ids = needed + 3 + needed / 16;
  const std::vector<int32_t> order =
      permutation(stream, static_cast<int32_t>(ids));
  size_t next = 0;
  for (Request& request : requests) {
    if (request.last < 0) continue;
    const auto& lender = requests[0].table;
    request.table.assign(lender.begin(), lender.begin() + request.shared);
    while (static_cast<int64_t>(request.table.size()) < pages_to(request.last))
      request.table.push_back(order[next++] + 1);
  }
  return static_cast<int>(ids) + 1;
}

// The bits of the positions [from, to) in page number `page` of a table.
uint64_t page_bits(int64_t page, int64_t from, int64_t to) {
  const int64_t first =
      std::clamp<int64_t>(from - page * kPageTokens, 0, kPageTokens);
  const int64_t last =
      std::clamp<int64_t>(to - page * kPageTokens, first, kPageTokens);
  const auto below = [](int64_t bit) {
    return bit == kPageTokens ? ~uint64_t{0} : (uint64_t{1} << bit) - 1;
  };
  return below(last) & ~below(first);
}

// Scoring alone stores no key: all keys of a row are there already.
std::vector<PageState> page_states(const std::vector<Request>& requests,
                                   int pages, Stage stage) {
  std::vector<PageState> states(static_cast<size_t>(pages));
  for (const Request& request : requests) {
    if (request.last < 0) continue;
    const int64_t cached =
        stage == Stage::kScore ? request.last + 1 : request.first;
    for (size_t j = 0; j < request.table.size(); ++j) {
      PageState& state = states[static_cast<size_t>(request.table[j])];
      state.cached |= page_bits(static_cast<int64_t>(j), 0, cached);
      state.recent |=
          page_bits(static_cast<int64_t>(j),
                    std::max<int64_t>(cached - kRecentKeys, 0), cached);
    }
  }
  return states;
}

std::vector<Row> rows_of(const std::vector<PlacedRow>& placed,
                         const std::vector<Request>& requests, int step) {
  std::vector<Row> rows;
  for (const PlacedRow& place : placed) {
    Row row;
    const auto request = static_cast<size_t>(place.request);
    const int64_t position =
        place.request < 0
            ? -1
            : place.position + int64_t{step} * requests[request].rows;
    if (position >= 0) {
      const int64_t page =
          requests[request].table[static_cast<size_t>(position / kPageTokens)];
      row = {true, place.request, position,
             page * kPageTokens + position % kPageTokens};
    }
    rows.push_back(row);
  }
  return rows;
}

// Pages in use at a step that a stale entry of the request's table rows may
// name: other requests', which are not its own as well; of a single request,
// its own.
std::vector<int32_t> stale_pages(const std::vector<Row>& rows,
                                 const std::vector<Request>& requests,
                                 int own) {
  const std::vector<int32_t>& table = requests[static_cast<size_t>(own)].table;
  std::vector<int32_t> others, owns;
  for (size_t q = 0; q < requests.size(); ++q) {
    int64_t last = -1;
    for (const Row& row : rows)
      if (row.live && row.request == static_cast<int>(q))
        last = std::max(last, row.position);
    const auto& pages = requests[q].table;
    for (size_t j = 0; last >= 0 && static_cast<int64_t>(j) < pages_to(last);
         ++j) {
      if (static_cast<int>(q) == own)
        owns.push_back(pages[j]);
      else if (j >= table.size() || table[j] != pages[j])
        others.push_back(pages[j]);
    }
  }
  return others.empty() ? owns : others;
}

std::vector<int32_t> page_table(const std::vector<Row>& rows,
                                const std::vector<Request>& requests, int width,
                                const Stream& stream) {
  std::vector<int32_t> table(rows.size() * static_cast<size_t>(width), 0);
  std::vector<std::vector<int32_t>> stale(requests.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].live) continue;
    const auto request = static_cast<size_t>(rows[r].request);
    if (stale[request].empty())
      stale[request] = stale_pages(rows, requests, rows[r].request);
    for (int64_t j = 0; j < width; ++j) {
      const size_t at = r * static_cast<size_t>(width) + static_cast<size_t>(j);
      table[at] = j < pages_to(rows[r].position)
                      ? requests[request].table[static_cast<size_t>(j)]
                      : stale[request][stream.below(
                            at, static_cast<uint32_t>(stale[request].size()))];
    }
    // The worst stale entry: where the row before is another request's and
    // longer, it names that row's page at that row's last position.
    if (r == 0 || !rows[r - 1].live) continue;
    const Row& before = rows[r - 1];
    if (before.request != rows[r].request &&
        before.position / kPageTokens > rows[r].position / kPageTokens)
      table[r * static_cast<size_t>(width) +
            static_cast<size_t>(before.position / kPageTokens)] =
          static_cast<int32_t>(before.slot / kPageTokens);
  }
  return table;
}

Plan select_plan(const Case& c) {
  Plan plan;
  const Family& source = family(c.family);
  plan.max_keys = c.pos + 1;
  plan.list_entries = list_layout(Stream(0, ""), c.rows, c.geometry.k).entries;
  if (plan.max_keys < source.min_keys)
    plan.skipped =
        fmt::format("family {} needs {} scores and --pos {} gives {}", c.family,
                    source.min_keys, c.pos, plan.max_keys);
  plan.bytes = 4 * static_cast<uint64_t>(plan.list_entries);
  for (const int32_t length : select_lengths(c))
    plan.bytes += 4 * static_cast<uint64_t>(length);
  return plan;
}

}  // namespace

void check_positions(const Case& c) {
  for (const Request& request :
       requests_of(row_set(c.rowset).rows(c.rows, c.pos), c.steps))
    if (request.last + 1 > kMaxKeys)
      throw std::invalid_argument(
          fmt::format("--pos {} gives a row of {} keys on the last of {} "
                      "steps; at most {} are possible",
                      c.pos, request.last + 1, c.steps, kMaxKeys));
}

Plan make_plan(const Case& c, uint64_t seed) {
  if (c.stage == Stage::kSelect) return select_plan(c);
  check_positions(c);
  const std::string root = input_name(c);
  const std::vector<PlacedRow> placed = row_set(c.rowset).rows(c.rows, c.pos);
  std::vector<Request> requests = requests_of(placed, c.steps);
  Plan plan;
  plan.requests = static_cast<int>(requests.size());
  plan.pages = deal_pages(requests, Stream(seed, root + "/pages"));
  plan.page_states = page_states(requests, plan.pages, c.stage);
  for (const Request& request : requests)
    plan.max_keys = std::max(plan.max_keys, request.last + 1);
  plan.rope_positions = std::max<int64_t>(plan.max_keys, 1);
  plan.table_width =
      static_cast<int>((plan.max_keys + kPageTokens - 1) / kPageTokens) +
      kStaleColumns;
  plan.score_stride = (plan.max_keys + 3) / 4 * 4 + kScoreGuard;
  bool any_live = false;
  for (int t = 0; t < c.steps; ++t) {
    const std::string step_root = fmt::format("{}/step{}", root, t);
    Step step;
    step.rows = rows_of(placed, requests, t);
    step.page_table = page_table(step.rows, requests, plan.table_width,
                                 Stream(seed, step_root + "/stale"));
    ListLayout layout =
        list_layout(Stream(seed, step_root + "/indptr"), c.rows, c.geometry.k);
    step.indptr = std::move(layout.indptr);
    plan.list_entries = layout.entries;
    for (const Row& row : step.rows) any_live = any_live || row.live;
    plan.steps.push_back(std::move(step));
  }
  if (!any_live)
    plan.skipped =
        fmt::format("row set {} has no live row at --rows {} --pos {}",
                    c.rowset, c.rows, c.pos);
  plan.bytes = 4 * (static_cast<uint64_t>(c.rows) *
                        static_cast<uint64_t>(plan.score_stride) +
                    static_cast<uint64_t>(plan.list_entries));
  for (int i = 0; i < kInputs; ++i) {
    if (!used(Input(i), c)) continue;
    const InputInfo tensor = info(Input(i), c, plan);
    plan.bytes += tensor.bytes * (tensor.lifetime == Lifetime::kLayer
                                      ? static_cast<uint64_t>(c.launches)
                                      : 1);
  }
  return plan;
}

std::vector<int64_t> cached_slots(const Plan& plan) {
  std::vector<int64_t> slots;
  for (size_t page = 0; page < plan.page_states.size(); ++page)
    for (int token = 0; token < oracle::kPageTokens; ++token)
      if ((plan.page_states[page].cached >> token & 1) != 0)
        slots.push_back(int64_t(page) * oracle::kPageTokens + token);
  return slots;
}

}  // namespace exact_topk::cases
