// SPDX-License-Identifier: Apache-2.0
#include "harness/perturb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <regex>

#include "harness/failure.h"
#include "oracle/pages.h"

namespace exact_topk::harness {
namespace {

template <typename Number>
Number number(const std::string& text, const std::string& whole) {
  Number value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format(
        "--perturb {} has the number {}, which is too large", whole, text));
  return value;
}

// Leaves of a digest tree that are no input of cases/: the cached keys, packed,
// and what own slots hold before a step.
constexpr const char* kCache = "cache";
constexpr const char* kCachedKeys = "cached_keys";
constexpr const char* kCachedScales = "cached_scales";
constexpr const char* kPoisonKeys = "poison_keys";
constexpr const char* kPoisonScales = "poison_scales";

// Every input that can be named: those of the case, and those leaves.
std::vector<cases::InputInfo> leaves_of(const cases::Case& c,
                                        const cases::Plan& plan) {
  using cases::DType, cases::Lifetime;
  std::vector<cases::InputInfo> leaves;
  for (int i = 0; i < cases::kInputs; ++i)
    if (const cases::Input input{i}; cases::used(input, c))
      leaves.push_back(cases::info(input, c, plan));
  if (c.stage != cases::Stage::kLaunch || plan.steps.empty()) return leaves;
  const std::vector<cases::Row>& rows = plan.steps.front().rows;
  const int64_t live = std::count_if(rows.begin(), rows.end(),
                                     [](auto& row) { return row.live; });
  const int64_t cached = std::ssize(cases::cached_slots(plan));
  const auto add = [&](const char* name, DType dtype, Lifetime lifetime,
                       std::vector<int64_t> shape) {
    leaves.push_back({name, dtype, std::move(shape), 0, lifetime});
  };
  add(kCachedKeys, DType::kU8, Lifetime::kLayer, {cached, oracle::kHeadDim});
  add(kCachedScales, DType::kF32, Lifetime::kLayer, {cached});
  add(kPoisonKeys, DType::kU8, Lifetime::kStep, {live, oracle::kHeadDim});
  add(kPoisonScales, DType::kF32, Lifetime::kStep, {live});
  return leaves;
}

}  // namespace

Perturb parse_perturb(const std::string& text) {
  constexpr size_t kLongest = 256;  // far above any input's name
  if (text.size() > kLongest)
    throw UsageError(
        fmt::format("--perturb has {} characters; no input's name is that long",
                    text.size()));
  static const std::regex form(
      R"(launch(\d+)/(?:step(\d+)/)?in/([a-z0-9_/]+)(?:\.npy)?:(\d+):(\d+))");
  std::smatch part;
  if (!std::regex_match(text, part, form))
    throw UsageError(fmt::format(
        "--perturb {} is not of the form launch0/step0/in/TENSOR:ELEMENT:BIT",
        text));
  Perturb p;
  p.launch = number<int>(part[1], text);
  p.step = part[2].matched ? number<int>(part[2], text) : -1;
  p.tensor = part[3];
  p.element = number<int64_t>(part[4], text);
  p.bit = number<int>(part[5], text);
  return p;
}

std::string to_string(const Perturb& p) {
  const std::string step = p.step < 0 ? "" : fmt::format("step{}/", p.step);
  return fmt::format("launch{}/{}in/{}:{}:{}", p.launch, step, p.tensor,
                     p.element, p.bit);
}

bool perturbs(const Perturb& p, const cases::InputInfo& input, int launch,
              int step) {
  if (p.tensor != input.name) return false;
  if (input.lifetime == cases::Lifetime::kCase) return p.step <= 0;
  if (p.launch != launch) return false;
  return input.lifetime == cases::Lifetime::kStep
             ? p.step >= 0 && p.step == step
             : p.step <= 0;
}

std::optional<Perturb> in_input(const Perturb& p, const cases::Case& c,
                                const cases::Plan& plan) {
  const bool keys = p.tensor == kCachedKeys;
  if (!keys && p.tensor != kCachedScales) return p;
  const std::vector<int64_t> slots = cases::cached_slots(plan);
  const int64_t dims = keys ? oracle::kHeadDim : 1;
  if (p.element / dims >= std::ssize(slots)) return std::nullopt;
  const int64_t slot = slots[static_cast<size_t>(p.element / dims)];
  Perturb byte = p;
  byte.tensor = kCache;
  byte.element = static_cast<int64_t>(
      keys ? oracle::key_byte(slot, static_cast<int>(p.element % dims),
                              c.geometry.page_layout)
           : oracle::scale_byte(slot) + static_cast<size_t>(p.bit / 8));
  byte.bit = p.bit % 8;
  return byte;
}

void check_perturb(const Perturb& p, const std::vector<cases::Case>& all,
                   uint64_t seed) {
  bool found = false;
  std::vector<std::string> names;
  for (const cases::Case& c : all) {
    const cases::Plan plan = cases::make_plan(c, seed);
    for (const cases::InputInfo& leaf : leaves_of(c, plan)) {
      if (std::find(names.begin(), names.end(), leaf.name) == names.end())
        names.push_back(leaf.name);
      if (p.launch >= c.launches || p.step >= c.steps ||
          !perturbs(p, leaf, p.launch, p.step))
        continue;
      const int bits = 8 * cases::element_bytes(leaf.dtype);
      if (p.element >= leaf.elements() || p.bit >= bits)
        throw UsageError(fmt::format(
            "--perturb {} lies outside {}, which has {} elements of {} bits in "
            "{}",
            to_string(p), p.tensor, leaf.elements(), bits, cases::name(c)));
      found = true;
    }
  }
  if (!found)
    throw UsageError(fmt::format(
        "--perturb {} names no input of a launch and step of any selected "
        "case; the inputs are {}",
        to_string(p),
        names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "))));
}

void flip(const Perturb& p, const cases::Step& rows, int launch, int step,
          cases::Poison& poison) {
  const bool keys = p.tensor == kPoisonKeys;
  if ((!keys && p.tensor != kPoisonScales) || p.launch != launch ||
      p.step != step)
    return;
  const int64_t dims = keys ? oracle::kHeadDim : 1;
  int64_t live = 0;
  for (size_t row = 0; row < rows.rows.size(); ++row) {
    if (!rows.rows[row].live || live++ != p.element / dims) continue;
    if (keys)
      flip(p, p.element - p.element % dims, sizeof(uint8_t),
           std::as_writable_bytes(std::span(poison.keys[row])));
    else
      flip(p, p.element, sizeof(float),
           std::as_writable_bytes(std::span(&poison.scales[row], 1)));
  }
}

void flip(const Perturb& p, int64_t begin, int element_bytes,
          std::span<std::byte> elements) {
  const int64_t index = p.element - begin;
  if (index < 0 ||
      index >= static_cast<int64_t>(elements.size()) / element_bytes)
    return;
  elements[static_cast<size_t>(index * element_bytes + p.bit / 8)] ^=
      std::byte{1} << (p.bit % 8);
}

}  // namespace exact_topk::harness
