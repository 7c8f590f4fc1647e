// SPDX-License-Identifier: Apache-2.0
#pragma once

// HIP's names for the few calls of CUDA's runtime that our kernels and their
// host side use. (HIP 5.2.3's own headers for NVIDIA do not compile with
// CUDA 13.) Device features that CUDA spells as HIP does (__syncthreads,
// atomicAdd, __popcll, vector types) need nothing here; those that differ
// (shuffles, ballots) are behind wave.h.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

using hipError_t = cudaError_t;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipDeviceProp_t = cudaDeviceProp;
using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;

inline constexpr hipError_t hipSuccess = cudaSuccess;
inline constexpr cudaMemcpyKind hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
inline constexpr cudaMemcpyKind hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
inline constexpr cudaMemcpyKind hipMemcpyDeviceToDevice =
    cudaMemcpyDeviceToDevice;
inline constexpr cudaStreamCaptureMode hipStreamCaptureModeThreadLocal =
    cudaStreamCaptureModeThreadLocal;

inline const char* hipGetErrorString(hipError_t error) {
  return cudaGetErrorString(error);
}
inline hipError_t hipGetLastError() { return cudaGetLastError(); }
inline hipError_t hipGetDeviceCount(int* count) {
  return cudaGetDeviceCount(count);
}
inline hipError_t hipSetDevice(int device) { return cudaSetDevice(device); }
inline hipError_t hipMalloc(void** pointer, size_t bytes) {
  return cudaMalloc(pointer, bytes);
}
inline hipError_t hipFree(void* pointer) { return cudaFree(pointer); }
inline hipError_t hipMemcpy(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind kind) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline hipError_t hipMemset(void* to, int value, size_t bytes) {
  return cudaMemset(to, value, bytes);
}
inline hipError_t hipStreamCreate(hipStream_t* stream) {
  return cudaStreamCreate(stream);
}
inline hipError_t hipStreamDestroy(hipStream_t stream) {
  return cudaStreamDestroy(stream);
}
inline hipError_t hipStreamSynchronize(hipStream_t stream) {
  return cudaStreamSynchronize(stream);
}
inline hipError_t hipEventCreate(hipEvent_t* event) {
  return cudaEventCreate(event);
}
inline hipError_t hipEventDestroy(hipEvent_t event) {
  return cudaEventDestroy(event);
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return cudaEventRecord(event, stream);
}
inline hipError_t hipEventSynchronize(hipEvent_t event) {
  return cudaEventSynchronize(event);
}
inline hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start,
                                      hipEvent_t stop) {
  return cudaEventElapsedTime(milliseconds, start, stop);
}

inline hipError_t hipMemsetAsync(void* to, int value, size_t bytes,
                                 hipStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, stream);
}
inline hipError_t hipStreamBeginCapture(hipStream_t stream,
                                        cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(stream, mode);
}
inline hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  return cudaStreamEndCapture(stream, graph);
}
// HIP has what CUDA 11 had: the node at fault, and a log. None is given here.
inline hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph,
                                      cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(exec, graph, 0);
}
inline hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  return cudaGraphUpload(exec, stream);
}
inline hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  return cudaGraphLaunch(exec, stream);
}
inline hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
  return cudaGraphExecDestroy(exec);
}
inline hipError_t hipGraphDestroy(hipGraph_t graph) {
  return cudaGraphDestroy(graph);
}

namespace exact_topk::hip::nvidia {

inline constexpr uint32_t kPlainLds =
    48 << 10;  // bytes of dynamic LDS that a kernel may have without asking

// Asks for more LDS than a kernel has by itself.
template <class... Parameters>
hipError_t allow_lds(void (*kernel)(Parameters...), uint32_t bytes) {
  if (bytes <= kPlainLds) return cudaSuccess;
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

}  // namespace exact_topk::hip::nvidia

// HIP's sharedMemPerBlock is what a kernel may ask for; CUDA calls that opt-in.
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties,
                                         int device) {
  const hipError_t error = cudaGetDeviceProperties(properties, device);
  properties->sharedMemPerBlock = properties->sharedMemPerBlockOptin;
  return error;
}

template <class... Parameters, class... Arguments>
void hipLaunchKernelGGL(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                        uint32_t lds_bytes, hipStream_t stream,
                        Arguments... arguments) {
  if (exact_topk::hip::nvidia::allow_lds(kernel, lds_bytes) != cudaSuccess)
    return;  // hipGetLastError says why
  kernel<<<grid, block, lds_bytes, stream>>>(
      static_cast<Parameters>(arguments)...);
}

template <class... Parameters>
hipError_t hipLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid,
                                      dim3 block, void** arguments,
                                      uint32_t lds_bytes, hipStream_t stream) {
  const hipError_t error =
      exact_topk::hip::nvidia::allow_lds(kernel, lds_bytes);
  if (error != cudaSuccess) return error;
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel),
                                     grid, block, arguments, lds_bytes, stream);
}

// Declares `type* name`: the block's dynamic LDS, aligned as the matrix unit
// wants its operands.
#define HIP_DYNAMIC_SHARED(type, name)                              \
  extern __shared__ __align__(1024) unsigned char exact_topk_lds[]; \
  type* const name = reinterpret_cast<type*>(exact_topk_lds);
