// SPDX-License-Identifier: Apache-2.0
#include "cases/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "cases/caches.h"
#include "cases/families.h"
#include "cases/order.h"
#include "cases/rowsets.h"
#include "cases/words.h"

namespace exact_topk::cases {
namespace {

[[noreturn]] void refuse(std::string_view option, std::string_view text,
                         std::string_view takes) {
  throw std::invalid_argument(
      fmt::format("{} is '{}'; it takes {}", option, text, takes));
}

template <typename Number>
Number number(std::string_view option, std::string_view text, Number least,
              Number most, std::string_view takes) {
  Number value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      value < least || value > most)
    refuse(option, text, takes);
  return value;
}

template <typename Value, size_t N>
Value word(std::string_view option, std::string_view text,
           const Words<Value, N>& words) {
  const auto value = meaning_of(words, text);
  if (!value) refuse(option, text, choices(words));
  return *value;
}

// The name as it stands where one of the registered entries has it.
template <typename Entry>
std::string registered(std::string_view option, std::string_view text,
                       std::span<const Entry> entries) {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  if (std::find(names.begin(), names.end(), text) == names.end())
    refuse(option, text, fmt::format("{}", fmt::join(names, ", ")));
  return std::string(text);
}

template <typename Value, typename Parse>
void append(std::vector<Value>& list, std::string_view text, Parse parse) {
  for (const std::string_view part : split(text)) list.push_back(parse(part));
}

constexpr CaseOption kOptions[] = {
    {"--kind", "KIND,...",
     "where the hidden state comes from: index, dense, embed (default index)",
     [](CaseOptions& o, std::string_view text) {
       append(o.kinds, text,
              [](auto part) { return word("--kind", part, kKindWords); });
     }},
    {"--tp", "T",
     "partial sums, and ranks that must agree: 1, 2, 4 or 8 (default the "
     "largest that divides the ranks)",
     [](CaseOptions& o, std::string_view text) {
       o.tp = number("--tp", text, 1, 8, "1, 2, 4 or 8");
       if ((*o.tp & (*o.tp - 1)) != 0) refuse("--tp", text, "1, 2, 4 or 8");
     }},
    {"--rows", "W,...", "rows of a step, 1 to 8 (default 2,4)",
     [](CaseOptions& o, std::string_view text) {
       append(o.rows, text, [](auto part) {
         return number("--rows", part, 1, 8, "numbers from 1 to 8");
       });
     }},
    {"--cache", "CACHE,...",
     "keys already cached: random, ties, zeros, recent, narrow (default all)",
     [](CaseOptions& o, std::string_view text) {
       append(o.caches, text,
              [](auto part) { return registered("--cache", part, caches()); });
     }},
    {"--rowset", "ROWSET,...",
     "rows of a step: serving, mixed, chain, padded (default all)",
     [](CaseOptions& o, std::string_view text) {
       append(o.rowsets, text, [](auto part) {
         return registered("--rowset", part, row_sets());
       });
     }},
    {"--pos", "P,...", "position of the last row on step 0 (default 8447)",
     [](CaseOptions& o, std::string_view text) {
       append(o.positions, text, [](auto part) {
         return number("--pos", part, int64_t{0}, kMaxKeys - 1,
                       fmt::format("positions from 0 to {}", kMaxKeys - 1));
       });
     }},
    {"--stage", "STAGE",
     "what is run: launch, score or select (default launch)",
     [](CaseOptions& o, std::string_view text) {
       o.stage = word("--stage", text, kStageWords);
     }},
    {"--rows-from", "FAMILY,...",
     "score rows of --stage select (default all families)",
     [](CaseOptions& o, std::string_view text) {
       append(o.families, text, [](auto part) {
         return registered("--rows-from", part, families());
       });
     }},
    {"--fill", "FILL", "values of --stage score: integers",
     [](CaseOptions& o, std::string_view text) {
       if (text != "integers") refuse("--fill", text, "integers");
       o.fill = text;
     }},
    {"--order", "ORDER",
     "model: the 21 launches of a model in their order, each of its own kind",
     [](CaseOptions& o, std::string_view text) {
       if (text != kModelOrder) refuse("--order", text, kModelOrder);
       o.order = text;
     }},
    {"--launches", "L",
     "launches of a step, each with its own weights and cache (default 2; "
     "--order model: 21)",
     [](CaseOptions& o, std::string_view text) {
       o.launches = number("--launches", text, 1, 64, "a number from 1 to 64");
     }},
    {"--steps", "S", "decode steps (default 2)",
     [](CaseOptions& o, std::string_view text) {
       o.steps = number("--steps", text, 1, 64, "a number from 1 to 64");
     }},
    {"--k", "K,...",
     "keys selected of a row, 1 to 2048 (default the geometry's)",
     [](CaseOptions& o, std::string_view text) {
       append(o.k, text, [](auto part) {
         return number("--k", part, 1, 2048, "numbers from 1 to 2048");
       });
     }},
    {"--geometry", "NAME|FILE.json",
     "glm53, glm51 or dsv32; a name with a slash or .json is a JSON file "
     "(default glm53)",
     [](CaseOptions& o, std::string_view text) { o.geometry = text; }},
    {"--rope", "LAYOUT", "interleaved or half-split",
     [](CaseOptions& o, std::string_view text) {
       o.rope = word("--rope", text, kRopeWords);
     }},
    {"--hadamard", "on|off", "Hadamard transform of queries and keys",
     [](CaseOptions& o, std::string_view text) {
       o.hadamard = word("--hadamard", text, kHadamardWords);
     }},
    {"--scale", "FORMAT", "format of a key's scale: ue8m0 or f32",
     [](CaseOptions& o, std::string_view text) {
       o.scale = word("--scale", text, kScaleWords);
     }},
    {"--fp8", "FORMAT", "format of key bytes: e4m3fn or e4m3fnuz",
     [](CaseOptions& o, std::string_view text) {
       o.fp8 = word("--fp8", text, kFp8Words);
     }},
    {"--page-layout", "LAYOUT",
     "where key bytes lie in a page: plain or preshuffled16",
     [](CaseOptions& o, std::string_view text) {
       o.page_layout = word("--page-layout", text, kPageLayoutWords);
     }},
};

}  // namespace

std::span<const CaseOption> case_options() { return kOptions; }

CaseOptions parse_case_options(std::span<const std::string> arguments) {
  CaseOptions options;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& argument = arguments[i++];
    const size_t equals = argument.find('=');
    const std::string_view option =
        std::string_view(argument).substr(0, equals);
    const auto entry =
        std::find_if(std::begin(kOptions), std::end(kOptions),
                     [&](const auto& o) { return o.name == option; });
    if (entry == std::end(kOptions))
      throw std::invalid_argument(
          argument.starts_with("-")
              ? fmt::format("'{}' is no case option", argument)
              : stray_word(argument));
    if (equals != std::string::npos) {
      entry->set(options, std::string_view(argument).substr(equals + 1));
      continue;
    }
    if (i == arguments.size() || arguments[i].starts_with("--"))
      throw std::invalid_argument(
          fmt::format("{} needs a value, {}", option, entry->value));
    entry->set(options, arguments[i++]);
  }
  return options;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t from = 0;;) {
    const size_t comma = text.find(',', from);
    parts.push_back(text.substr(from, comma - from));
    if (comma == std::string_view::npos) return parts;
    from = comma + 1;
  }
}

std::string stray_word(std::string_view word) {
  return fmt::format("'{}' belongs to no option; lists are written with commas",
                     word);
}

std::vector<std::string> values_of(std::span<const std::string> arguments,
                                   std::string_view option) {
  std::vector<std::string> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == option && i + 1 < arguments.size())
      values.push_back(arguments[i + 1]);
    if (argument.starts_with(option) &&
        argument.substr(option.size()).starts_with('='))
      values.emplace_back(argument.substr(option.size() + 1));
  }
  return values;
}

}  // namespace exact_topk::cases
