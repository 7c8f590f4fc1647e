// SPDX-License-Identifier: Apache-2.0
#pragma once

// What differs between the candidates that are built from this one source,
// apart from HIP itself: the name, whether the host reads device memory in
// place, and what a run can choose.

#include <cstdint>
#include <string>

#include "kernels/hip/hip.h"

namespace exact_topk::kernels::backend {

#if defined(EXACT_TOPK_HIP_CPU)
inline constexpr const char* kName = "exact-topk cpu";
inline constexpr const char* kDevice = "cpu";
inline constexpr uint32_t kWaveSizes = 32 | 64;
inline constexpr bool kHostReadsDevice = true;
#elif defined(EXACT_TOPK_HIP_NVIDIA)
inline constexpr const char* kName = "exact-topk nvidia";
inline constexpr const char* kDevice = "nvidia";
inline constexpr uint32_t kWaveSizes = 32;
inline constexpr bool kHostReadsDevice = false;
#else
inline constexpr const char* kName = "exact-topk amd";
inline constexpr const char* kDevice = "amd";
inline constexpr uint32_t kWaveSizes = 64;
inline constexpr bool kHostReadsDevice = false;
#endif

// What a run chooses of a simulated device; a real one ignores it.
struct Choices {
  int wave = (kWaveSizes & 64) != 0 ? 64 : 32;  // lanes a wave
  std::string schedule;  // order in which threads run; empty: the default
  uint64_t seed = 1;     // of the pattern in fresh memory and LDS
};

// Devices that are visible now; 0 where there is none, or no driver.
int devices();

// LDS that a block of this device may have, in bytes.
size_t lds_bytes(int device);

// Sets them for what follows in this process. Throws Failure for a schedule
// that does not parse.
void apply(const Choices& choices);

// The sentence of an error that a call or launch returned.
std::string describe(hipError_t error);

// Gives an allocation the name by which reports call it.
void name_allocation(const void* pointer, const std::string& name);

// Throws Failure unless the call went well: XTK_FAILED with the device's
// sentence.
void check(hipError_t error, const char* call);

}  // namespace exact_topk::kernels::backend
