// SPDX-License-Identifier: Apache-2.0
//
// Where the results of both programs go: standard output, and report files that
// appear whole or not at all. Every failure to write is a std::runtime_error of
// one sentence; none is passed over, so that a full disk cannot look like a
// pass.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace exact_topk::dumps {

// Writes all of `text` to standard output at once (lines of several ranks do
// not mix as long as they fit a pipe).
void print(std::string_view text);

// A file that a report will be written to. A regular file, or one that does not
// exist yet, is written beside its place and renamed; a device, an unnamed pipe
// and standard output (/dev/stdout) are written as they are. A FIFO is refused:
// without a reader it would hold the run up for ever.
class ReportFile {
 public:
  // Refuses (std::runtime_error, naming `option`) a path that cannot be
  // written, without changing what is there.
  ReportFile(std::string option, const std::string& path);

  void write(std::string_view text) const;

 private:
  std::string option_;  // for the sentences: "--json"
  std::filesystem::path
      path_;  // as given; symbolic links followed where it is a regular file
  bool in_place_ = false;  // a device, a pipe or standard output
};

}  // namespace exact_topk::dumps
