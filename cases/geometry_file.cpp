// SPDX-License-Identifier: Apache-2.0
#include "cases/geometry_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "cases/text_file.h"
#include "cases/words.h"

namespace exact_topk::cases {
namespace {

using nlohmann::json;

std::optional<oracle::Geometry> preset(const std::string& name) {
  for (const oracle::Geometry& g :
       {oracle::glm53(), oracle::glm51(), oracle::dsv32()})
    if (g.name == name) return g;
  return std::nullopt;
}

// One file's fields; every refusal names file, field, value and what it takes.
class GeometryFile {
 public:
  explicit GeometryFile(std::string path) : path_(std::move(path)) {}

  oracle::Geometry read() {
    const std::string stem = stem_of_path();
    object_ = parsed(text());
    if (!object_.is_object()) fail("does not hold a JSON object");

    oracle::Geometry g = oracle::glm53();
    g.name = stem;
    using Reader = std::function<void(const std::string&)>;
    const std::map<std::string, Reader> fields = {
        {"hidden",
         [&](const std::string& f) { g.hidden = multiple(f, 64, 1 << 16); }},
        {"q_lora",
         [&](const std::string& f) { g.q_lora = multiple(f, 64, 1 << 16); }},
        {"heads", [&](const std::string& f) { g.heads = multiple(f, 8, 128); }},
        {"k", [&](const std::string& f) { g.k = integer(f, 1, 2048); }},
        {"theta", [&](const std::string& f) { g.theta = positive(f); }},
        {"rope", [&](const std::string& f) { g.rope = word(f, kRopeWords); }},
        {"hadamard", [&](const std::string& f) { g.hadamard = boolean(f); }},
        {"scale",
         [&](const std::string& f) { g.scale = word(f, kScaleWords); }},
        {"fp8", [&](const std::string& f) { g.fp8 = word(f, kFp8Words); }},
        {"page_layout",
         [&](const std::string& f) {
           g.page_layout = word(f, kPageLayoutWords);
         }},
        {"layer_norm_eps",
         [&](const std::string& f) { g.layer_norm_eps = epsilon(f); }},
        {"rms_eps", [&](const std::string& f) { g.rms_eps = epsilon(f); }},
        {"head_dim",
         [&](const std::string& f) {
           integer(f, oracle::kHeadDim, oracle::kHeadDim);
         }},
        {"rope_dims",
         [&](const std::string& f) {
           integer(f, oracle::kRopeDims, oracle::kRopeDims);
         }},
        {"page_tokens",
         [&](const std::string& f) {
           integer(f, oracle::kPageTokens, oracle::kPageTokens);
         }},
    };
    for (const auto& item : object_.items())
      if (!fields.contains(item.key()))
        fail(fmt::format("has the unknown field {}", json(item.key()).dump()));
    for (const char* needed : {"hidden", "q_lora", "heads", "theta"})
      if (!object_.contains(needed))
        fail(fmt::format("lacks the field {}", needed));
    for (const auto& [field, reader] : fields)
      if (object_.contains(field)) reader(field);
    return g;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument(fmt::format("--geometry {} {}", path_, what));
  }

  [[noreturn]] void refuse(const std::string& field,
                           const std::string& takes) const {
    fail(fmt::format("has {} = {}; it takes {}", field, object_[field].dump(),
                     takes));
  }

  std::string text() const {
    try {
      return read_text_file(path_);
    } catch (const std::invalid_argument& error) {
      fail(fmt::format("cannot be read: {}", error.what()));
    }
  }

  // A field that comes twice is refused: the library would take the last.
  json parsed(const std::string& text) const {
    std::set<std::string> seen;
    const auto check = [&](int depth, json::parse_event_t event, json& value) {
      if (event == json::parse_event_t::key && depth == 1 &&
          !seen.insert(value.get<std::string>()).second)
        fail(fmt::format("repeats the field {}", value.dump()));
      return true;
    };
    try {
      return json::parse(text, check);
    } catch (const json::parse_error& error) {
      fail(fmt::format("is not JSON: byte {} cannot be parsed", error.byte));
    } catch (const json::out_of_range&) {
      fail("holds a number that is too large for f64");
    }
  }

  // The file's stem, checked to be fit for case names.
  std::string stem_of_path() const {
    const std::string stem = std::filesystem::path(path_).stem().string();
    if (preset(stem)) fail(fmt::format("is named like the preset {}", stem));
    for (const char c : stem)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' &&
          c != '-' && c != '_')
        fail(
            "has a name with other characters than letters, digits, dots, "
            "dashes and underscores");
    return stem;
  }

  int integer(const std::string& field, int least, int most) const {
    const json& value = object_[field];
    const std::string takes =
        least == most ? fmt::format("{} only", least)
                      : fmt::format("an integer from {} to {}", least, most);
    if (!value.is_number_integer() || value < least || value > most)
      refuse(field, takes);
    return value.get<int>();
  }

  int multiple(const std::string& field, int of, int most) const {
    const json& value = object_[field];
    if (!value.is_number_integer() || value < of || value > most ||
        value.get<int>() % of != 0)
      refuse(field,
             fmt::format("a multiple of {} from {} to {}", of, of, most));
    return value.get<int>();
  }

  double positive(const std::string& field) const {
    const json& value = object_[field];
    if (!value.is_number() || !(value.get<double>() > 0.0) ||
        !std::isfinite(value.get<double>()))
      refuse(field, "a number above 0");
    return value.get<double>();
  }

  float epsilon(const std::string& field) const {
    const double value = positive(field);
    if (value >= 1.0 || static_cast<float>(value) == 0.0f)
      refuse(field, "a number between 0 and 1");
    return static_cast<float>(value);
  }

  bool boolean(const std::string& field) const {
    if (!object_[field].is_boolean()) refuse(field, "true or false");
    return object_[field].get<bool>();
  }

  template <typename Value, size_t N>
  Value word(const std::string& field, const Words<Value, N>& words) const {
    const json& value = object_[field];
    const auto meaning = value.is_string()
                             ? meaning_of(words, value.get<std::string>())
                             : std::nullopt;
    if (!meaning) refuse(field, choices(words));
    return *meaning;
  }

  std::string path_;  // as given
  json object_;       // the file's content
};

}  // namespace

bool names_geometry_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

oracle::Geometry find_geometry(const std::string& preset_or_path) {
  if (names_geometry_file(preset_or_path))
    return GeometryFile(preset_or_path).read();
  if (const auto found = preset(preset_or_path)) return *found;
  throw std::invalid_argument(fmt::format(
      "--geometry {} is no preset (glm53, glm51, dsv32); the name of a file "
      "holds a slash or ends in .json",
      preset_or_path));
}

}  // namespace exact_topk::cases
