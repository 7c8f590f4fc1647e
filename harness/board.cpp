// SPDX-License-Identifier: Apache-2.0
#include "harness/board.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

namespace exact_topk::harness {
namespace {

// A place: the length of the text, 0 until it is all there, and the text.
// /dev/shm gives pages as they are written, so that room is cheap.
constexpr uint64_t kPlaceBytes = 16 * 1024;
constexpr uint64_t kTextOffset = sizeof(uint32_t);
constexpr uint64_t kClaimBytes = 64;

using Length = std::atomic<uint32_t>;
static_assert(Length::is_always_lock_free &&
              sizeof(Length) == sizeof(uint32_t));

}  // namespace

// The memory comes zeroed, which is a free claim and empty places.
Board::Board(const Group& world, int64_t cases)
    : memory_(world, kClaimBytes + static_cast<uint64_t>(cases) * kPlaceBytes) {
}

std::byte* Board::place(int64_t case_index) const {
  return memory_.bytes().data() + kClaimBytes +
         static_cast<uint64_t>(case_index) * kPlaceBytes;
}

void Board::pin(int64_t case_index, const CaseResult& result) {
  std::string text = nlohmann::json(result).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kPlaceBytes - kTextOffset) {
    CaseResult less = result;
    less.checks.clear();
    less.reason.resize(std::min<size_t>(less.reason.size(), kPlaceBytes / 4));
    text = nlohmann::json(less).dump(-1, ' ', false,
                                     nlohmann::json::error_handler_t::replace);
    if (text.size() > kPlaceBytes - kTextOffset) return;
  }
  std::byte* at = place(case_index);
  std::memcpy(at + kTextOffset, text.data(), text.size());
  reinterpret_cast<Length*>(at)->store(static_cast<uint32_t>(text.size()),
                                       std::memory_order_release);
}

std::optional<CaseResult> Board::read(int64_t case_index) const {
  const std::byte* at = place(case_index);
  const uint32_t length =
      reinterpret_cast<const Length*>(at)->load(std::memory_order_acquire);
  if (length == 0) return std::nullopt;
  const char* text = reinterpret_cast<const char*>(at + kTextOffset);
  return nlohmann::json::parse(text, text + length).get<CaseResult>();
}

std::atomic<int>* Board::claim() const {
  return reinterpret_cast<std::atomic<int>*>(memory_.bytes().data());
}

}  // namespace exact_topk::harness
