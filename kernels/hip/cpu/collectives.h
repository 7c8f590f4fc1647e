// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wave collectives of HIP on the CPU: each is one meeting of the lanes,
// computed by the last to arrive.
//
// Every operation is a Collective constant and a small argument that lives on
// each lane's stack; results go back through the argument. The same operations
// serve HIP's own names (hip_runtime.h), where the wave size is a run option,
// and wave.h, where it is a template parameter.

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "kernels/hip/cpu/runtime.h"

namespace exact_topk::hip::cpu {

/// The mask that asks for every lane of the wave that has not exited.
inline constexpr std::uint64_t kWholeWave = ~std::uint64_t{0};

template <class Arg>
Arg& arg_of(const Meeting& meeting, int lane) {
  return *static_cast<Arg*>(meeting.args[lane]);
}

/// Calls visit(lane) for every present lane, lowest first.
template <class Visit>
void for_each_lane(const Meeting& meeting, Visit visit) {
  for (std::uint64_t rest = meeting.present; rest != 0; rest &= rest - 1)
    visit(std::countr_zero(rest));
}

template <class T>
requires std::is_trivially_copyable_v<T>
struct Exchange {
  T value;     // what this lane offers
  int source;  // the lane that it reads
  T result;    // what that lane offers
};

template <class T>
inline constexpr Collective kExchange{
    "shuffle",
    [](const Meeting& m) {
      for_each_lane(m, [&](int lane) {
        auto& mine = arg_of<Exchange<T>>(m, lane);
        mine.result = arg_of<Exchange<T>>(m, mine.source).value;
      });
    },
    [](const void* arg, int) {
      return static_cast<const Exchange<T>*>(arg)->source;
    },
    false};

/// The value that lane `source` offers.
template <class T>
T exchange(T value, int source, std::uint64_t mask, Site site) {
  Exchange<T> arg{value, source, value};
  meet(kExchange<T>, &arg, mask, site);
  return arg.result;
}

struct Vote {
  bool vote;             // this lane's predicate
  std::uint64_t result;  // bit l: lane l takes part and votes yes
};

inline constexpr Collective kVote{
    "ballot",
    [](const Meeting& m) {
      std::uint64_t yes = 0;
      for_each_lane(m, [&](int lane) {
        yes |= std::uint64_t{arg_of<Vote>(m, lane).vote} << lane;
      });
      for_each_lane(m, [&](int lane) { arg_of<Vote>(m, lane).result = yes; });
    },
    nullptr, false};

inline std::uint64_t ballot(bool vote, std::uint64_t mask, Site site) {
  Vote arg{vote, 0};
  meet(kVote, &arg, mask, site);
  return arg.result;
}

/// `all` compares with the lanes that take part, which only the last to arrive
/// knows.
inline constexpr Collective kAll{"all",
                                 [](const Meeting& m) {
                                   bool everyone = true;
                                   for_each_lane(m, [&](int lane) {
                                     everyone &= arg_of<Vote>(m, lane).vote;
                                   });
                                   for_each_lane(m, [&](int lane) {
                                     arg_of<Vote>(m, lane).result = everyone;
                                   });
                                 },
                                 nullptr, false};

inline bool all(bool vote, std::uint64_t mask, Site site) {
  Vote arg{vote, 0};
  meet(kAll, &arg, mask, site);
  return arg.result != 0;
}

/// A reduction of all lanes in the order of a butterfly: lane l takes lane l ^
/// d for d = width/2 .. 1, so that every lane gets the same bits. Op is
/// commutative.
template <class T, class Op>
inline constexpr Collective kReduce{"reduction",
                                    [](const Meeting& m) {
                                      T v[64];
                                      for (int lane = 0; lane < m.width; ++lane)
                                        v[lane] = arg_of<T>(m, lane);
                                      for (int d = m.width / 2; d > 0; d /= 2)
                                        for (int lane = 0; lane < d; ++lane)
                                          v[lane] = Op{}(v[lane], v[lane + d]);
                                      for (int lane = 0; lane < m.width; ++lane)
                                        arg_of<T>(m, lane) = v[0];
                                    },
                                    nullptr, true};

template <class Op, class T>
T reduce(T value, Site site) {
  meet(kReduce<T, Op>, &value, kWholeWave, site);
  return value;
}

/// Sums of lanes 0..l, modulo 2^32.
inline constexpr Collective kScan{"scan",
                                  [](const Meeting& m) {
                                    std::uint32_t sum = 0;
                                    for (int lane = 0; lane < m.width; ++lane) {
                                      auto& value =
                                          arg_of<std::uint32_t>(m, lane);
                                      value = sum += value;
                                    }
                                  },
                                  nullptr, true};

inline std::uint32_t inclusive_scan(std::uint32_t value, Site site) {
  meet(kScan, &value, kWholeWave, site);
  return value;
}

}  // namespace exact_topk::hip::cpu
