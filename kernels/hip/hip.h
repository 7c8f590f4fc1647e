// SPDX-License-Identifier: Apache-2.0
#pragma once

// HIP, whichever HIP this is. Kernels include this header and the wave, mma and
// atomics headers beside it, and are then written in plain HIP; nothing else in
// the project knows the platform.
//
//   EXACT_TOPK_HIP_AMD      ROCm's or Debian's HIP
//   EXACT_TOPK_HIP_NVIDIA   CUDA under HIP's names
//   neither                 HIP on the CPU: fibers, counted barriers, reports
//   (cpu/runtime.h)

#if defined(EXACT_TOPK_HIP_AMD)
#include <hip/hip_runtime.h>
#elif defined(EXACT_TOPK_HIP_NVIDIA)
#include "kernels/hip/nvidia.h"
#else
#define EXACT_TOPK_HIP_CPU 1
#include "kernels/hip/cpu/hip_runtime.h"
#endif
