// SPDX-License-Identifier: Apache-2.0
#include "harness/open_candidate.h"

#include <fmt/format.h>

#include <chrono>

namespace exact_topk::harness {

Candidate::Candidate(const Library& library, const xtk_open_options& options)
    : library_(library) {
  const Functions& f = library_.functions();
  check("xtk_open", library_.call("xtk_open", [&] {
    return f.open(&options, &candidate_);
  }));
  if (candidate_ == nullptr)
    throw CandidateError(
        XTK_FAILED,
        fmt::format("candidate {}: xtk_open succeeded without a candidate",
                    library_.path()));
}

Candidate::~Candidate() {
  if (candidate_ == nullptr) return;
  const PluginCall guard(library_.path().c_str(), "xtk_close",
                         library_.foreign(), library_.timeout());
  library_.functions().close(candidate_);
}

void Candidate::check(const char* call, xtk_status status) const {
  if (status == XTK_OK) return;
  const char* sentence = library_.call("xtk_last_error", [&] {
    return library_.functions().last_error(candidate_);
  });
  throw CandidateError(
      status,
      fmt::format("candidate {}: {} failed with status {}: {}", library_.path(),
                  call, static_cast<int>(status),
                  sentence == nullptr ? "it gives no reason" : sentence));
}

uint64_t Candidate::tensor_bytes(xtk_tensor tensor) const {
  return library_.call("xtk_tensor_bytes", [&] {
    return library_.functions().tensor_bytes(candidate_, tensor);
  });
}

void Candidate::write(xtk_tensor tensor, int layer, uint64_t offset,
                      std::span<const std::byte> bytes) {
  check("xtk_write", library_.call("xtk_write", [&] {
    return library_.functions().write(candidate_, tensor, layer, offset,
                                      bytes.size(), bytes.data());
  }));
}

void Candidate::read(xtk_tensor tensor, int layer, uint64_t offset,
                     std::span<std::byte> bytes) {
  check("xtk_read", library_.call("xtk_read", [&] {
    return library_.functions().read(candidate_, tensor, layer, offset,
                                     bytes.size(), bytes.data());
  }));
}

const std::byte* Candidate::view(xtk_tensor tensor, int layer) {
  const auto function = library_.functions().view;
  if (function == nullptr) return nullptr;
  return static_cast<const std::byte*>(library_.call(
      "xtk_view", [&] { return function(candidate_, tensor, layer); }));
}

std::span<const std::byte> Candidate::look(xtk_tensor tensor, int layer,
                                           uint64_t bytes,
                                           std::vector<std::byte>& storage) {
  if (const std::byte* in_place = view(tensor, layer)) return {in_place, bytes};
  storage.resize(bytes);
  read(tensor, layer, 0, storage);
  return storage;
}

void Candidate::launch(const xtk_launch_args& args) {
  check("xtk_launch", library_.call("xtk_launch", [&] {
    return library_.functions().launch(candidate_, &args);
  }));
  check("xtk_wait", library_.call("xtk_wait", [&] {
    return library_.functions().wait(candidate_);
  }));
}

void Candidate::select(const xtk_select_args& args) {
  check("xtk_select", library_.call("xtk_select", [&] {
    return library_.functions().select(candidate_, &args);
  }));
}

double Candidate::replay(const Replayed& what, const std::string& part,
                         int replays, bool cold) {
  const auto function = library_.functions().replay;
  if (function == nullptr)
    throw UsageError(fmt::format(
        "candidate {} does not export xtk_replay, which timing needs",
        library_.path()));
  const xtk_replay_args args{sizeof(xtk_replay_args),
                             what.stage,
                             part == kWhole ? nullptr : part.c_str(),
                             replays,
                             cold ? 1 : 0,
                             what.calls};
  double microseconds = 0;
  check("xtk_replay", library_.call("xtk_replay", [&] {
    return function(candidate_, &args, &microseconds);
  }));
  return microseconds;
}

bool Candidate::has_part(const Replayed& what, const std::string& part) {
  try {
    replay(what, part, 1, false);
  } catch (const CandidateError& error) {
    if (error.status != XTK_UNSUPPORTED || part == kWhole) throw;
    return false;
  }
  return true;
}

std::optional<xtk_witness_row> Candidate::witness(int row) {
  const auto function = library_.functions().witness;
  if (function == nullptr) return std::nullopt;
  xtk_witness_row witness{};
  witness.struct_size = sizeof(witness);
  check("xtk_witness", library_.call("xtk_witness", [&] {
    return function(candidate_, row, &witness);
  }));
  return witness;
}

std::optional<uint64_t> Candidate::scratch_bytes(const std::string& arm) const {
  const auto function = library_.functions().scratch_bytes;
  if (function == nullptr) return std::nullopt;
  return library_.call("xtk_scratch_bytes",
                       [&] { return function(candidate_, arm.c_str()); });
}

Clocked Candidate::replay_by_clock(const Replayed& what, int replays) {
  const xtk_replay_args args{
      sizeof(xtk_replay_args), what.stage, nullptr, replays, 0, what.calls};
  if (const auto prepare = library_.functions().prepare_replay;
      prepare != nullptr)
    check("xtk_prepare_replay", library_.call("xtk_prepare_replay", [&] {
      return prepare(candidate_, &args);
    }));
  const auto begin = std::chrono::steady_clock::now();
  const double claimed = replay(what, kWhole, replays, false);
  const std::chrono::duration<double, std::micro> wall =
      std::chrono::steady_clock::now() - begin;
  return {claimed, wall.count() / replays};
}

void Candidate::score(const xtk_score_args& args) {
  check("xtk_score", library_.call("xtk_score", [&] {
    return library_.functions().score(candidate_, &args);
  }));
}

}  // namespace exact_topk::harness
