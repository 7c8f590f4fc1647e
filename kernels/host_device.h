// SPDX-License-Identifier: Apache-2.0
//
// host_device.h - the mark of a function that kernels and host code both call.
// Host compilers see nothing.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define EXACT_TOPK_HOST_DEVICE __host__ __device__
#else
#define EXACT_TOPK_HOST_DEVICE
#endif
