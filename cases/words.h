// SPDX-License-Identifier: Apache-2.0
//
// words.h - the words that options, case names and geometry files use for the
// values of an enum.
//
// One table a kind of value, read in both directions, so that a word cannot be
// accepted without being printed the same way.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cases/case.h"
#include "oracle/geometry.h"

namespace exact_topk::cases {

template <typename Value, size_t N>
using Words = std::array<std::pair<std::string_view, Value>, N>;

inline constexpr Words<Stage, 3> kStageWords{{{"launch", Stage::kLaunch},
                                              {"score", Stage::kScore},
                                              {"select", Stage::kSelect}}};
inline constexpr Words<Kind, 3> kKindWords{{{"index", Kind::kIndex},
                                            {"dense", Kind::kDense},
                                            {"embed", Kind::kEmbed}}};
inline constexpr Words<oracle::Rope, 2> kRopeWords{
    {{"interleaved", oracle::Rope::kInterleaved},
     {"half-split", oracle::Rope::kHalfSplit}}};
inline constexpr Words<bool, 2> kHadamardWords{{{"on", true}, {"off", false}}};
inline constexpr Words<oracle::Scale, 2> kScaleWords{
    {{"ue8m0", oracle::Scale::kUe8m0}, {"f32", oracle::Scale::kF32}}};
inline constexpr Words<oracle::Fp8, 2> kFp8Words{
    {{"e4m3fn", oracle::Fp8::kE4m3fn}, {"e4m3fnuz", oracle::Fp8::kE4m3fnuz}}};
inline constexpr Words<oracle::PageLayout, 2> kPageLayoutWords{
    {{"plain", oracle::PageLayout::kPlain},
     {"preshuffled16", oracle::PageLayout::kPreshuffled16}}};

template <typename Value, size_t N>
std::string word_of(const Words<Value, N>& words, Value value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return std::string(word);
  return "?";
}

template <typename Value, size_t N>
std::optional<Value> meaning_of(const Words<Value, N>& words,
                                std::string_view text) {
  for (const auto& [word, meaning] : words)
    if (word == text) return meaning;
  return std::nullopt;
}

// "index, dense or embed"
template <typename Value, size_t N>
std::string choices(const Words<Value, N>& words) {
  std::string text;
  for (size_t i = 0; i < N; ++i)
    text.append(i == 0       ? ""
                : i + 1 == N ? " or "
                             : ", ")
        .append(words[i].first);
  return text;
}

}  // namespace exact_topk::cases
