// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/schedule.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <stdexcept>
#include <string>

namespace exact_topk::hip::cpu {
namespace {

std::vector<std::uint32_t> index_order(std::uint32_t blocks) {
  std::vector<std::uint32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

class RoundRobin final : public Scheduler {
 public:
  void release(ReadyQueue& queue, Fiber* const* group,
               std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) queue.push(group[i]);
  }
  std::vector<std::uint32_t> block_order(std::uint32_t blocks) override {
    return index_order(blocks);
  }
};

class Reverse final : public Scheduler {
 public:
  void release(ReadyQueue& queue, Fiber* const* group,
               std::size_t count) override {
    for (std::size_t i = count; i-- > 0;) queue.push(group[i]);
  }
  std::vector<std::uint32_t> block_order(std::uint32_t blocks) override {
    auto order = index_order(blocks);
    std::reverse(order.begin(), order.end());
    return order;
  }
};

class Random final : public Scheduler {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // Inside-out shuffling: a queue in random order stays in random order with
  // every thread that joins it.
  void release(ReadyQueue& queue, Fiber* const* group,
               std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      queue.push(group[i]);
      queue.swap(below(queue.size()), queue.size() - 1);
    }
  }
  std::vector<std::uint32_t> block_order(std::uint32_t blocks) override {
    auto order = index_order(blocks);
    for (std::uint32_t i = 1; i < blocks; ++i)
      std::swap(order[i], order[below(i + std::size_t{1})]);
    return order;
  }

 private:
  std::size_t below(std::size_t bound) {  // splitmix64, scaled
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::size_t>(((z ^ (z >> 31)) >> 32) * bound >> 32);
  }

  std::uint64_t state_;
};

}  // namespace

void ReadyQueue::reset(std::size_t threads) {
  if (threads > ring_.size()) ring_.resize(std::bit_ceil(threads));
  mask_ = ring_.size() - 1;
  head_ = tail_ = 0;
}

std::unique_ptr<Scheduler> parse_schedule(std::string_view spec) {
  if (spec == "round-robin") return std::make_unique<RoundRobin>();
  if (spec == "reverse") return std::make_unique<Reverse>();
  constexpr std::string_view kRandom = "random:";
  if (spec.substr(0, kRandom.size()) == kRandom) {
    const auto digits = spec.substr(kRandom.size());
    std::uint64_t seed = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (!digits.empty() && error == std::errc() &&
        end == digits.data() + digits.size())
      return std::make_unique<Random>(seed);
    throw std::invalid_argument(
        "schedule '" + std::string(spec) +
        "' needs a decimal seed of 64 bits after random:");
  }
  throw std::invalid_argument("schedule '" + std::string(spec) +
                              "' is none of round-robin, reverse, random:SEED");
}

}  // namespace exact_topk::hip::cpu
