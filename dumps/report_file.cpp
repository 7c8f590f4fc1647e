// SPDX-License-Identifier: Apache-2.0
#include "dumps/report_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace exact_topk::dumps {
namespace {

// 0, or the errno that stopped it.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int write_file(const std::filesystem::path& path, int flags,
               std::string_view text) {
  const int descriptor =
      path == "/dev/stdout"
          ? dup(STDOUT_FILENO)
          : open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  int error = write_all(descriptor, text);
  if (error == 0 && fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS)
    error = errno;  // EINVAL: no file, a pipe
  if (close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

// Whether a path leads to something with a name of its own. What /dev/fd/3
// leads to, a pipe that a shell made, has none.
bool has_name(const std::filesystem::path& path) {
  std::error_code error;
  return !std::filesystem::canonical(path, error).empty() && !error;
}

}  // namespace

void print(std::string_view text) {
  if (const int error = write_all(STDOUT_FILENO, text); error != 0)
    throw std::runtime_error(fmt::format(
        "standard output cannot be written: {}", std::strerror(error)));
}

ReportFile::ReportFile(std::string option, const std::string& path)
    : option_(std::move(option)), path_(path) {
  const auto refuse = [&](const char* why) -> void {
    throw std::runtime_error(
        fmt::format("{} {} cannot be written: {}", option_, path, why));
  };
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) refuse(std::strerror(errno));
  if (there && S_ISDIR(status.st_mode)) refuse("it is a directory");
  const bool standard_output = path == "/dev/stdout";
  if (there && !standard_output && S_ISFIFO(status.st_mode) && has_name(path_))
    refuse("it is a FIFO");
  if (there && S_ISSOCK(status.st_mode)) refuse("it is a socket");
  if (there && access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  in_place_ = standard_output || (there && !S_ISREG(status.st_mode));
  if (in_place_) return;
  std::error_code ignored;  // a dangling link stays as given and fails below
  if (there) path_ = std::filesystem::canonical(path_, ignored);
  const std::filesystem::path folder =
      path_.has_parent_path() ? path_.parent_path() : ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
}

void ReportFile::write(std::string_view text) const {
  const auto fail = [&](int error) {
    throw std::runtime_error(fmt::format("{} {} cannot be written: {}", option_,
                                         path_.string(), std::strerror(error)));
  };
  if (in_place_) {
    if (const int error = write_file(path_, O_APPEND, text); error != 0)
      fail(error);
    return;
  }
  std::filesystem::path beside = path_;
  beside += fmt::format(".partial-{}", getpid());
  int error = write_file(beside, O_CREAT | O_TRUNC, text);
  if (error == 0 && rename(beside.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(beside.c_str());
  fail(error);
}

}  // namespace exact_topk::dumps
