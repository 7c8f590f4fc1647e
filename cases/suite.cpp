// SPDX-License-Identifier: Apache-2.0
#include "cases/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "cases/expand.h"
#include "cases/geometry_file.h"
#include "cases/options.h"
#include "cases/text_file.h"

namespace exact_topk::cases {
namespace {

namespace fs = std::filesystem;

// The words of a line. Quotes keep blanks and # together; a word may be quoted
// in part.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '#' && !in_word) {
      break;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0)
    throw std::invalid_argument(fmt::format(
        "a {} is not closed", quote == '"' ? "double quote" : "single quote"));
  if (in_word) words.push_back(std::move(word));
  return words;
}

class Reader {
 public:
  Reader(std::optional<int> tp, int default_tp)
      : tp_(tp), default_tp_(default_tp) {}

  void read(const fs::path& path) {
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(path, ignored);
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end())
      throw std::invalid_argument(
          fmt::format("suite {} includes itself", path.string()));
    std::istringstream file(text_of(path));
    open_.push_back(canonical);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      try {
        take(words_of(line), path);
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(
            fmt::format("{}:{}: {}", path.string(), number, error.what()));
      }
    }
    open_.pop_back();
  }

  std::vector<Case> cases;

 private:
  static std::string text_of(const fs::path& path) {
    try {
      return read_text_file(path);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("suite {} cannot be read: {}",
                                              path.string(), error.what()));
    }
  }

  void take(const std::vector<std::string>& words, const fs::path& path) {
    if (words.empty()) return;
    if (words[0] == "include") {
      if (words.size() != 2)
        throw std::invalid_argument("include takes one file");
      return read(path.parent_path() / words[1]);
    }
    CaseOptions options = parse_case_options(words);
    if (tp_) options.tp = tp_;
    append_new(cases, expand(options, default_tp_));
  }

  std::optional<int> tp_;  // overrides every line's
  int default_tp_;         // of lines without one
  std::vector<fs::path>
      open_;  // files being read, to see a file that includes itself
};

std::string text_or_nothing(const fs::path& path) {
  try {
    return read_text_file(path);
  } catch (const std::invalid_argument&) {
    return "";
  }
}

// Adds the files that a suite's lines name, and theirs. What cannot be read or
// understood names none: reading the suite will say so.
void add_files(const fs::path& path, std::vector<fs::path>& files) {
  std::error_code ignored;
  const fs::path canonical = fs::weakly_canonical(path, ignored);
  if (std::find(files.begin(), files.end(), canonical) != files.end()) return;
  files.push_back(canonical);
  std::istringstream file(text_or_nothing(path));
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> words;
    try {
      words = words_of(line);
    } catch (const std::invalid_argument&) {
      continue;
    }
    if (words.size() == 2 && words[0] == "include")
      add_files(path.parent_path() / words[1], files);
    for (const std::string& geometry : values_of(words, "--geometry"))
      if (names_geometry_file(geometry)) files.emplace_back(geometry);
  }
}

}  // namespace

std::vector<fs::path> suite_files(const std::string& path) {
  std::vector<fs::path> files;
  add_files(path, files);
  return files;
}

std::vector<Case> read_suite(const std::string& path, std::optional<int> tp,
                             int default_tp) {
  Reader reader(tp, default_tp);
  reader.read(path);
  return std::move(reader.cases);
}

}  // namespace exact_topk::cases
