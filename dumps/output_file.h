// SPDX-License-Identifier: Apache-2.0
//
// A file being written, whose every failure is heard: open, write (short writes
// and a full disk among them), sync and close each become one
// std::runtime_error sentence naming the file and the cause. Writes are
// buffered, so an error may surface at a later write or at close(); a caller
// that wants to know must call close(). The destructor alone drops what is
// buffered: it is the path of an error already on its way.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace exact_topk::dumps {

class OutputFile {
 public:
  // Creates the file or truncates it.
  explicit OutputFile(std::filesystem::path path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  enum class Sync { no, yes };
  // Writes what is buffered and closes; with Sync::yes the bytes are on the
  // disk when it returns.
  void close(Sync sync);

 private:
  void write_through(std::span<const std::byte> bytes);
  void flush();
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;     // for the sentence
  int descriptor_;                 // -1 once closed or moved from
  std::vector<std::byte> buffer_;  // at most kBufferBytes not yet written
};

}  // namespace exact_topk::dumps
