// SPDX-License-Identifier: Apache-2.0
#pragma once

// EXACT_TOPK_UNROLL before a loop of constant count: arrays that it indexes
// stay in registers on a GPU.

#include "kernels/hip/hip.h"

#if defined(EXACT_TOPK_HIP_CPU)
#define EXACT_TOPK_UNROLL
#else
#define EXACT_TOPK_UNROLL _Pragma("unroll")
#endif
