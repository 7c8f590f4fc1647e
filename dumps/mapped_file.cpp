// SPDX-License-Identifier: Apache-2.0
#include "dumps/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace exact_topk::dumps {

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for its writer before fstat
  // could refuse it.
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw std::runtime_error(
        fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  struct stat status;
  std::string fault;
  if (::fstat(descriptor, &status) != 0) {
    fault = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    fault = "it is no regular file";
  } else if (status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address =
        ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      fault = std::strerror(errno);
    } else {
      bytes_ = {static_cast<const std::byte*>(address), size};
    }
  }
  ::close(descriptor);
  if (!fault.empty())
    throw std::runtime_error(
        fmt::format("cannot read {}: {}", path.string(), fault));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty())
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string_view MappedFile::text() const {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

}  // namespace exact_topk::dumps
