// SPDX-License-Identifier: Apache-2.0
#include "harness/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "harness/failure.h"

namespace exact_topk::harness {
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

}  // namespace

void print(std::string_view text) {
  if (const int error = write_all(STDOUT_FILENO, text); error != 0)
    throw std::runtime_error(fmt::format(
        "standard output cannot be written: {}", std::strerror(error)));
}

ReportFile::ReportFile(std::string option, const std::string& path)
    : option_(std::move(option)), path_(path) {
  const auto refuse = [&](const char* why) -> void {
    throw UsageError(
        fmt::format("{} {} cannot be written: {}", option_, path, why));
  };
  struct stat status {};
  const bool there = stat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) refuse(std::strerror(errno));
  if (there && S_ISDIR(status.st_mode)) refuse("it is a directory");
  if (there && access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  in_place_ = path == "/dev/stdout" || (there && !S_ISREG(status.st_mode));
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

}  // namespace exact_topk::harness
