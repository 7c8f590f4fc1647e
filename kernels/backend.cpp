// SPDX-License-Identifier: Apache-2.0
#include "kernels/backend.h"

#include "kernels/failure.h"

namespace exact_topk::kernels::backend {

#if defined(EXACT_TOPK_HIP_CPU)

void apply(const Choices& choices) {
  hip::cpu::Options options;
  options.wave_size = choices.wave;
  options.seed = choices.seed;
  if (!choices.schedule.empty()) options.schedule = choices.schedule;
  try {
    hip::cpu::set_options(options);
  } catch (const std::invalid_argument& error) {
    throw Failure(XTK_INVALID, error.what());
  }
}

std::string describe(hipError_t error) {
  return error == hipErrorLaunchFailure ? hip::cpu::last_report()
                                        : hipGetErrorString(error);
}

void name_allocation(const void* pointer, const std::string& name) {
  hip::cpu::name_allocation(pointer, name);
}

size_t lds_bytes(int) { return hip::cpu::kLdsBytes; }

#else

void apply(const Choices&) {}

size_t lds_bytes(int device) {
  hipDeviceProp_t properties;
  check(hipGetDeviceProperties(&properties, device), "hipGetDeviceProperties");
  return properties.sharedMemPerBlock;
}

std::string describe(hipError_t error) { return hipGetErrorString(error); }

void name_allocation(const void*, const std::string&) {}

#endif

int devices() {
  int count = 0;
  return hipGetDeviceCount(&count) == hipSuccess ? count : 0;
}

void check(hipError_t error, const char* call) {
  if (error != hipSuccess)
    throw Failure(XTK_FAILED,
                  fmt::format("{} failed: {}", call, describe(error)));
}

}  // namespace exact_topk::kernels::backend
