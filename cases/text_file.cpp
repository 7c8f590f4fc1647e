// SPDX-License-Identifier: Apache-2.0
#include "cases/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace exact_topk::cases {
namespace {

constexpr off_t kMostBytes = 16 << 20;

// Closes the file where an exception leaves the reading, too.
struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number); }
  const int number;
};

[[noreturn]] void fail(int error) {
  throw std::invalid_argument(std::strerror(error));
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer before fstat
  // could refuse it.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0) fail(errno);
  const Descriptor file(number);
  struct stat status {};
  if (::fstat(file.number, &status) != 0) fail(errno);
  if (!S_ISREG(status.st_mode))
    throw std::invalid_argument("it is no regular file");
  if (status.st_size > kMostBytes)
    throw std::invalid_argument(
        fmt::format("it has {} bytes, and at most {} are taken", status.st_size,
                    kMostBytes));
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t got =
        ::read(file.number, text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  text.resize(length);
  return text;
}

}  // namespace exact_topk::cases
