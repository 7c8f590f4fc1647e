// SPDX-License-Identifier: Apache-2.0
#include "harness/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace exact_topk::harness {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::seconds kLinePeriod{
    30};  // between lines where there is no terminal

}  // namespace

Progress::Progress(int cases, bool shown)
    : cases_(cases),
      shown_(shown),
      terminal_(isatty(STDERR_FILENO) != 0),
      begin_(Clock::now()),
      said_(begin_) {}

Progress::~Progress() { clear(); }

void Progress::update(int taken, const std::string& name) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now - begin_).count();
  if (terminal_) {
    const int filled = cases_ > 0 ? kBarWidth * taken / cases_ : 0;
    fmt::print(stderr, "\r\033[K[{:<{}}] {}/{} {} s {:.60}",
               std::string(static_cast<size_t>(filled), '#'), kBarWidth, taken,
               cases_, seconds, name);
    std::fflush(stderr);
    drawn_ = true;
  } else if (now - said_ >= kLinePeriod) {
    fmt::print(stderr, "progress: case {} of {} after {} s: {}\n", taken,
               cases_, seconds, name);
    said_ = now;
  }
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace exact_topk::harness
