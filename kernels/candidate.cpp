// SPDX-License-Identifier: Apache-2.0
//
// The border of the ABI (candidate.h): null handles, statuses and sentences. No
// exception passes it.

#include "kernels/candidate.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/arms.h"
#include "kernels/backend.h"
#include "kernels/failure.h"
#include "kernels/session.h"

struct xtk_candidate {
  explicit xtk_candidate(const xtk_open_options* options) : session(options) {}

  exact_topk::kernels::Session session;  // everything that it holds
  std::string error;                     // the sentence on its last failure
};

namespace {

namespace kernels = exact_topk::kernels;

thread_local std::string open_error;  // the sentence on the last failure
                                      // without a candidate in this thread

// Runs a call and turns what it throws into a status and the sentence.
template <class Call>
xtk_status guarded(std::string& error, const Call& call) {
  try {
    call();
    return XTK_OK;
  } catch (const kernels::Failure& failure) {
    error = failure.what();
    return failure.status();
  } catch (const std::exception& failure) {
    error = failure.what();
    return XTK_FAILED;
  }
}

// The same for a call on a candidate.
template <class Call>
xtk_status with(xtk_candidate* candidate, const Call& call) {
  if (candidate == nullptr) {
    open_error = "candidate is a null pointer";
    return XTK_INVALID;
  }
  return guarded(candidate->error, [&] { call(candidate->session); });
}

}  // namespace

uint32_t xtk_abi_version(void) { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* description) {
  return guarded(open_error, [&] {
    // `devices` came later: a caller may not know it.
    constexpr size_t kLeast = offsetof(xtk_description, devices);
    kernels::require(description != nullptr, "description is a null pointer");
    kernels::require(
        description->struct_size >= kLeast,
        "description has a struct_size of {}; this version needs {}",
        description->struct_size, kLeast);
    const xtk_description whole = {
        .struct_size = description->struct_size,
        .name = kernels::backend::kName,
        .version = EXACT_TOPK_VERSION,
        .device = kernels::backend::kDevice,
        .stages = XTK_STAGE_LAUNCH | XTK_STAGE_SCORE | XTK_STAGE_SELECT,
        .wave_sizes = kernels::backend::kWaveSizes,
        .published = (uint64_t{1} << XTK_TENSOR_COUNT) - 1,
        .clobbers_score_tail = 0,
        .repeatable = 1,
        .contract = "base",
        .arms = kernels::kArms,
        .devices = kernels::backend::devices()};
    std::memcpy(description, &whole,
                std::min<size_t>(whole.struct_size, sizeof whole));
  });
}

xtk_status xtk_open(const xtk_open_options* options,
                    xtk_candidate** candidate) {
  return guarded(open_error, [&] {
    kernels::require(candidate != nullptr, "candidate is a null pointer");
    *candidate = nullptr;
    *candidate = std::make_unique<xtk_candidate>(options).release();
  });
}

const char* xtk_last_error(const xtk_candidate* candidate) {
  return candidate == nullptr ? open_error.c_str() : candidate->error.c_str();
}

void xtk_close(xtk_candidate* candidate) { delete candidate; }

uint64_t xtk_tensor_bytes(const xtk_candidate* candidate, xtk_tensor tensor) {
  return candidate == nullptr ? 0 : candidate->session.tensors().bytes(tensor);
}

xtk_status xtk_write(xtk_candidate* candidate, xtk_tensor tensor, int32_t layer,
                     uint64_t offset, uint64_t bytes, const void* source) {
  return with(candidate, [&](kernels::Session& session) {
    session.tensors().write(tensor, layer, offset, bytes, source);
  });
}

xtk_status xtk_read(xtk_candidate* candidate, xtk_tensor tensor, int32_t layer,
                    uint64_t offset, uint64_t bytes, void* destination) {
  return with(candidate, [&](kernels::Session& session) {
    session.tensors().read(tensor, layer, offset, bytes, destination);
  });
}

const void* xtk_view(xtk_candidate* candidate, xtk_tensor tensor,
                     int32_t layer) {
  const void* view = nullptr;
  if (kernels::backend::kHostReadsDevice) {
    with(candidate, [&](kernels::Session& session) {
      session.tensors().require_layer(tensor, layer);
      view = session.tensors().data<const void>(tensor, layer);
    });
  }
  return view;
}

xtk_status xtk_launch(xtk_candidate* candidate, const xtk_launch_args* args) {
  return with(candidate,
              [&](kernels::Session& session) { session.launch(args); });
}

xtk_status xtk_wait(xtk_candidate* candidate) {
  return with(candidate, [](kernels::Session& session) { session.wait(); });
}

xtk_status xtk_select(xtk_candidate* candidate, const xtk_select_args* args) {
  return with(candidate,
              [&](kernels::Session& session) { session.select(args); });
}

xtk_status xtk_score(xtk_candidate* candidate, const xtk_score_args* args) {
  return with(candidate,
              [&](kernels::Session& session) { session.score(args); });
}

xtk_status xtk_witness(xtk_candidate* candidate, int32_t row,
                       xtk_witness_row* witness) {
  return with(candidate, [&](kernels::Session& session) {
    kernels::require(witness != nullptr, "witness is a null pointer");
    const uint32_t size = witness->struct_size;
    kernels::require(size >= sizeof(xtk_witness_row),
                     "witness has a struct_size of {}; this version needs {}",
                     size, sizeof(xtk_witness_row));
    *witness = session.witness(row);
    witness->struct_size = size;
  });
}

xtk_status xtk_prepare_replay(xtk_candidate* candidate,
                              const xtk_replay_args* args) {
  return with(candidate,
              [&](kernels::Session& session) { session.prepare_replay(args); });
}

xtk_status xtk_replay(xtk_candidate* candidate, const xtk_replay_args* args,
                      double* microseconds) {
  return with(candidate, [&](kernels::Session& session) {
    *microseconds = session.replay(args, microseconds);
  });
}

uint64_t xtk_scratch_bytes(const xtk_candidate* candidate) {
  return candidate == nullptr ? 0 : candidate->session.scratch_bytes();
}
