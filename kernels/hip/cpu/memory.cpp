// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/memory.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/hip/cpu/runtime.h"

namespace exact_topk::hip::cpu {
namespace {

constexpr std::byte kGuardByte{0xA5};

const std::array<std::byte, kGuardBytes>& intact_guard() {
  static const auto guard = [] {
    std::array<std::byte, kGuardBytes> bytes;
    bytes.fill(kGuardByte);
    return bytes;
  }();
  return guard;
}

struct Allocation {
  std::size_t bytes;  // as asked for
  std::string name;   // as reports call it
};

struct Allocations {
  std::mutex mutex;                             // guards all below
  std::map<const std::byte*, Allocation> live;  // by first byte after the guard
  std::uint64_t count = 0;                      // allocations ever made
};

Allocations& allocations() {
  static Allocations instance;
  return instance;
}

std::span<std::byte> span_of(const std::byte* begin, std::size_t bytes) {
  return {const_cast<std::byte*>(begin), bytes};
}

std::optional<std::string> damage(const std::byte* begin,
                                  const Allocation& allocation) {
  const auto offset = damaged_guard({begin, allocation.bytes});
  if (!offset) return std::nullopt;
  return "write outside " + allocation.name + " of " +
         std::to_string(allocation.bytes) +
         " bytes: first overwritten byte at offset " + std::to_string(*offset);
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  const auto salt =
      static_cast<std::uint32_t>((seed + 1) * 0x9E3779B97F4A7C15u >> 32);
  const std::size_t words = bytes.size() / 4;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint32_t word =
        (static_cast<std::uint32_t>(i) + 1) * 0x85EBCA6Bu ^ salt;
    std::memcpy(bytes.data() + 4 * i, &word, 4);
  }
  for (std::size_t i = 4 * words; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(salt >> 8 * (i & 3));
}

void arm_guards(std::span<std::byte> bytes) {
  std::memset(bytes.data() - kGuardBytes, static_cast<int>(kGuardByte),
              kGuardBytes);
  std::memset(bytes.data() + bytes.size(), static_cast<int>(kGuardByte),
              kGuardBytes);
  sanitizer::poison(bytes.data() - kGuardBytes, kGuardBytes);
  sanitizer::poison(bytes.data() + bytes.size(), kGuardBytes);
}

void disarm_guards(std::span<std::byte> bytes) {
  sanitizer::unpoison(bytes.data() - kGuardBytes,
                      bytes.size() + 2 * kGuardBytes);
}

std::optional<std::ptrdiff_t> damaged_guard(std::span<const std::byte> bytes) {
  if constexpr (sanitizer::kAddress)
    return std::nullopt;  // poisoned: no write gets this far
  const auto first_damaged =
      [](const std::byte* guard) -> std::optional<std::ptrdiff_t> {
    if (std::memcmp(guard, intact_guard().data(), kGuardBytes) == 0)
      return std::nullopt;
    std::ptrdiff_t i = 0;
    while (guard[i] == kGuardByte) ++i;
    return i;
  };
  const auto size = static_cast<std::ptrdiff_t>(bytes.size());
  constexpr auto kGuard = static_cast<std::ptrdiff_t>(kGuardBytes);
  if (const auto after = first_damaged(bytes.data() + size))
    return size + *after;
  if (const auto before = first_damaged(bytes.data() - kGuard))
    return *before - kGuard;
  return std::nullopt;
}

void* allocate(std::size_t bytes) {
  const std::size_t rounded =
      (bytes + 3 * kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  auto* const memory =
      rounded < bytes
          ? nullptr
          : static_cast<std::byte*>(std::aligned_alloc(kGuardBytes, rounded));
  if (memory == nullptr) return nullptr;
  std::byte* const begin = memory + kGuardBytes;
  auto& all = allocations();
  const std::scoped_lock lock(all.mutex);
  const std::uint64_t ordinal = ++all.count;
  fill_pattern({begin, bytes}, options().seed);
  arm_guards({begin, bytes});
  all.live.emplace(begin,
                   Allocation{bytes, "allocation " + std::to_string(ordinal)});
  return begin;
}

Freed deallocate(void* pointer) {
  auto& all = allocations();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.live.find(static_cast<const std::byte*>(pointer));
  if (found == all.live.end()) return Freed::unknown_pointer;
  const auto sentence = damage(found->first, found->second);
  disarm_guards(span_of(found->first, found->second.bytes));
  all.live.erase(found);
  std::free(static_cast<std::byte*>(pointer) - kGuardBytes);
  if (!sentence) return Freed::success;
  set_report(*sentence);
  return Freed::guard_damaged;
}

void name_allocation(const void* pointer, std::string name) {
  auto& all = allocations();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.live.find(static_cast<const std::byte*>(pointer));
  if (found != all.live.end()) found->second.name = std::move(name);
}

bool overruns_allocation(const void* pointer, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(pointer);
  auto& all = allocations();
  const std::scoped_lock lock(all.mutex);
  auto found = all.live.upper_bound(begin);
  if (found == all.live.begin()) return false;
  --found;
  const auto offset = static_cast<std::size_t>(begin - found->first);
  if (offset >= found->second.bytes + kGuardBytes) return false;
  return offset > found->second.bytes || bytes > found->second.bytes - offset;
}

std::optional<std::string> check_allocations() {
  std::optional<std::string> first;
  auto& all = allocations();
  const std::scoped_lock lock(all.mutex);
  for (const auto& [begin, allocation] : all.live) {
    const auto sentence = damage(begin, allocation);
    if (!sentence) continue;
    arm_guards(span_of(begin, allocation.bytes));
    if (!first) first = sentence;
  }
  return first;
}

}  // namespace exact_topk::hip::cpu
