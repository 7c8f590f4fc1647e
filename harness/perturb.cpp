// SPDX-License-Identifier: Apache-2.0
#include "harness/perturb.h"

#include <fmt/format.h>

#include <charconv>
#include <regex>

#include "harness/failure.h"

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

}  // namespace

Perturb parse_perturb(const std::string& text) {
  constexpr size_t kLongest = 256;  // far above any input's name
  if (text.size() > kLongest)
    throw UsageError(
        fmt::format("--perturb has {} characters; no input's name is that long",
                    text.size()));
  static const std::regex form(
      R"(launch(\d+)/(?:step(\d+)/)?in/([a-z0-9_/]+):(\d+):(\d+))");
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
  if (p.tensor != input.name || p.launch != launch) return false;
  return input.lifetime == cases::Lifetime::kStep
             ? p.step >= 0 && p.step == step
             : p.step <= 0;
}

void check_perturb(const Perturb& p, const std::vector<cases::Case>& all,
                   uint64_t seed) {
  bool found = false;
  for (const cases::Case& c : all) {
    if (p.launch >= c.launches || p.step >= c.steps) continue;
    const cases::Plan plan = cases::make_plan(c, seed);
    for (int i = 0; i < cases::kInputs; ++i) {
      const auto input = static_cast<cases::Input>(i);
      if (!cases::used(input, c)) continue;
      const cases::InputInfo info = cases::info(input, c, plan);
      if (!perturbs(p, info, p.launch, p.step)) continue;
      const int bits = 8 * cases::element_bytes(info.dtype);
      if (p.element >= info.elements() || p.bit >= bits)
        throw UsageError(fmt::format(
            "--perturb {} lies outside {}, which has {} elements of {} bits in "
            "{}",
            to_string(p), p.tensor, info.elements(), bits, cases::name(c)));
      found = true;
    }
  }
  if (!found)
    throw UsageError(fmt::format(
        "--perturb {} names no input of any selected case", to_string(p)));
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
