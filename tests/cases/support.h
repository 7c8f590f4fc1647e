// SPDX-License-Identifier: Apache-2.0
//
// support.h - small things that the tests of cases/ share.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/expand.h"
#include "cases/inputs.h"
#include "cases/options.h"

namespace exact_topk::cases {

inline std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The cases of a line of options.
inline std::vector<Case> cases_of(const std::string& line, int default_tp = 8) {
  return expand(parse_case_options(split_words(line)), default_tp);
}

inline Case case_of(const std::string& line, int default_tp = 8) {
  const std::vector<Case> cases = cases_of(line, default_tp);
  if (cases.size() != 1)
    throw std::logic_error("the line gives " + std::to_string(cases.size()) +
                           " cases");
  return cases[0];
}

// The sentence of the std::invalid_argument that `action` throws, or "nothing
// thrown".
inline std::string sentence(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

// All of a tensor.
template <typename Value>
std::vector<Value> all_of(Input input, const Case& c, const Plan& plan,
                          uint64_t seed = 1, int launch = 0, int step = 0) {
  const InputInfo about = info(input, c, plan);
  std::vector<std::byte> bytes(about.bytes);
  fill(input, c, plan, seed, launch, step, 0, about.elements(), bytes);
  std::vector<Value> values(about.bytes / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A folder that goes away with the object.
class Folder {
 public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "cases_test.XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace exact_topk::cases
