// SPDX-License-Identifier: Apache-2.0
//
// A candidate that does one thing wrong, for tests of the checks: it wraps our
// own and forwards every call, but for the fault that EXACT_TOPK_FAULT names
// when it is opened. EXACT_TOPK_FAULT_OF is the path of the library that it
// wraps.
//
// A fault of a stage whose output later stages read is planted upstream: the
// wrapped candidate is given another weight than the harness wrote, and the
// harness reads back its own, so that everything downstream is right for what
// was published. Other faults are done to the tensors after a launch.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/candidate.h"

namespace {

struct Inner {
  void* handle = nullptr;
  template <typename Function>
  Function get(const char* name) const {
    return reinterpret_cast<Function>(dlsym(handle, name));
  }
};

const Inner& inner() {
  static const Inner library = [] {
    const char* path = std::getenv("EXACT_TOPK_FAULT_OF");
    return Inner{dlopen(path == nullptr ? "" : path, RTLD_NOW | RTLD_LOCAL)};
  }();
  return library;
}
#define INNER(name) inner().get<decltype(&name)>(#name)

std::string fault_name() {
  const char* name = std::getenv("EXACT_TOPK_FAULT");
  return name == nullptr ? "" : name;
}

// Weights that are changed on their way in, and the fault that does it.
const std::map<std::string, xtk_tensor> kChangedWeights = {
    {"x", XTK_INPUT_GAMMA}, {"q_lora", XTK_Q_GAMMA}, {"mailbox", XTK_WQ_B},
    {"raw_key", XTK_WK},    {"w", XTK_WEIGHTS_PROJ}, {"key", XTK_K_GAMMA}};

using Bytes = std::vector<std::byte>;

}  // namespace

struct xtk_candidate {
  xtk_candidate* wrapped = nullptr;
  std::string fault;
  xtk_open_options options{};
  int launches = 0;  // done
  xtk_launch_args last{};
  std::map<int, Bytes>
      shown;          // layer: the changed weight as the harness wrote it
  Bytes list_before;  // what the list held before the launch
  std::map<const void*, Bytes> remembered;  // results by pointer of the inputs
  std::vector<int32_t> late;   // an answer that is still to be written
  int32_t* late_to = nullptr;  // where

  // Writes it, as who waits at last for what he should have waited for.
  void catch_up() { std::copy(late.begin(), late.end(), late_to); }

  // Puts the result of an earlier call with the same inputs' pointer in the
  // place of this one.
  void recall(const void* inputs, void* result, size_t bytes) {
    const auto* now = static_cast<const std::byte*>(result);
    const auto [kept, fresh] = remembered.try_emplace(inputs, now, now + bytes);
    if (!fresh) std::memcpy(result, kept->second.data(), bytes);
  }

  template <typename T>
  std::vector<T> read(xtk_tensor tensor, size_t count, int layer = 0,
                      uint64_t offset = 0) const {
    std::vector<T> values(count);
    INNER(xtk_read)
    (wrapped, tensor, layer, offset, count * sizeof(T), values.data());
    return values;
  }
  template <typename T>
  void write(xtk_tensor tensor, uint64_t element, T value, int layer = 0) {
    INNER(xtk_write)
    (wrapped, tensor, layer, element * sizeof(T), sizeof(T), &value);
  }

  // The last live row, and what it published.
  struct Row {
    size_t row = 0;
    int64_t n = 0;
    uint64_t scores = 0, list = 0;  // first elements
    size_t entries = 0;
    std::vector<int32_t> table;
    int32_t slot(int64_t position) const {
      return table[size_t(position / 64)] * 64 + int32_t(position % 64);
    }
  };
  Row row() const {
    const auto rows = size_t(last.rows);
    const auto positions = read<int32_t>(XTK_POSITIONS, rows);
    const auto indptr = read<int32_t>(XTK_INDPTR, rows);
    Row found;
    for (size_t r = 0; r < rows; ++r)
      if (positions[r] >= 0) found.row = r;
    found.n = positions[found.row] + 1;
    found.scores = found.row * uint64_t(options.score_stride);
    found.list = uint64_t(indptr[found.row]);
    found.entries = size_t(std::min<int64_t>(found.n, options.geometry.k));
    const auto width = size_t(options.table_width);
    found.table = read<int32_t>(XTK_PAGE_TABLE, width, 0,
                                found.row * width * sizeof(int32_t));
    return found;
  }
  size_t pad_row() const {
    const auto positions = read<int32_t>(XTK_POSITIONS, size_t(last.rows));
    return size_t(std::find(positions.begin(), positions.end(), -1) -
                  positions.begin());
  }
  std::vector<float> scores_of(const Row& r) const {
    return read<float>(XTK_SCORES, size_t(r.n), 0, r.scores * sizeof(float));
  }
  std::vector<int32_t> list_of(const Row& r) const {
    return read<int32_t>(XTK_LIST, r.entries, 0, r.list * sizeof(int32_t));
  }
  // Positions that the list lacks.
  std::vector<int64_t> unlisted(const Row& r) const {
    const std::vector<int32_t> list = list_of(r);
    std::vector<int64_t> positions;
    for (int64_t j = 0; j < r.n; ++j)
      if (std::find(list.begin(), list.end(), r.slot(j)) == list.end())
        positions.push_back(j);
    return positions;
  }
  void flip_score_bit(const Row& r, int64_t position, int bit) {
    uint32_t bits = 0;
    const float score = scores_of(r)[size_t(position)];
    std::memcpy(&bits, &score, sizeof bits);
    write<uint32_t>(XTK_SCORES, r.scores + uint64_t(position),
                    bits ^ (1u << bit));
  }

  xtk_replay_args passed_on(xtk_replay_args args) const {
    if (fault == "replay one call") args.calls = 1;
    return args;
  }
  void spoil();
  void spoil_scores(const Row& r);
  void spoil_list(const Row& r);
  void spoil_elsewhere(const Row& r);
};

void xtk_candidate::spoil_scores(const Row& r) {
  if (fault == "score bit") flip_score_bit(r, 5, 22);
  if (fault == "score nan") write<float>(XTK_SCORES, r.scores + 5, NAN);
  if (fault == "score infinite")
    write<float>(XTK_SCORES, r.scores + 5, INFINITY);
  if (fault == "score of nothing")
    write<float>(XTK_SCORES, r.scores + 5, 1e-30f);
  if (fault == "scores never written")
    for (int64_t j = 0; j < r.n; ++j)
      write<float>(XTK_SCORES, r.scores + uint64_t(j), 0.0f);
  if (fault == "score past n")
    write<float>(XTK_SCORES, r.scores + uint64_t(r.n), 0.0f);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (fault == "rank" && rank != nullptr && std::string(rank) == "1")
    flip_score_bit(r, 5, 0);
  if (fault == "other arm" && std::string(last.arm) == "twin")
    flip_score_bit(r, 5, 0);
  // The first launch that is a repeat: 2 launches of 2 steps come before.
  if (fault == "repeat" && launches == 5) flip_score_bit(r, 5, 0);
}

void xtk_candidate::spoil_list(const Row& r) {
  const std::vector<int32_t> list = list_of(r);
  if (fault == "list swapped") {
    write<int32_t>(XTK_LIST, r.list, list[1]);
    write<int32_t>(XTK_LIST, r.list + 1, list[0]);
  }
  if (fault == "list misses")
    write<int32_t>(XTK_LIST, r.list, r.slot(unlisted(r)[0]));
  if (fault == "list wrong tie") {
    // A selected key equal to the k-th makes way for an unselected one.
    const std::vector<float> scores = scores_of(r);
    std::vector<int64_t> selected;
    const std::vector<int64_t> rest = unlisted(r);
    for (int64_t j = 0; j < r.n; ++j)
      if (std::find(rest.begin(), rest.end(), j) == rest.end())
        selected.push_back(j);
    const auto score = [&](int64_t j) { return scores[size_t(j)]; };
    const int64_t least = *std::min_element(
        selected.begin(), selected.end(),
        [&](int64_t a, int64_t b) { return score(a) < score(b); });
    const auto tie = std::find_if(rest.begin(), rest.end(), [&](int64_t j) {
      return score(j) == score(least);
    });
    const auto entry =
        std::find(list.begin(), list.end(), r.slot(least)) - list.begin();
    write<int32_t>(XTK_LIST, r.list + uint64_t(entry), r.slot(*tie));
  }
  if (fault == "list duplicate") write<int32_t>(XTK_LIST, r.list + 1, list[0]);
  if (fault == "list out of range") write<int32_t>(XTK_LIST, r.list, 3);
  if (fault == "list not written") {
    int32_t before = 0;
    std::memcpy(&before, &list_before[r.list * sizeof before], sizeof before);
    write<int32_t>(XTK_LIST, r.list, before);
  }
  if (fault == "list guard before") write<int32_t>(XTK_LIST, r.list - 1, -1);
  if (fault == "list guard after")
    write<int32_t>(XTK_LIST, r.list + r.entries, -1);
}

void xtk_candidate::spoil_elsewhere(const Row& r) {
  // After the last launch of a case, a repeat: no result depends on the edit.
  const bool at_end = launches == 5;
  if (fault == "query bit") {
    const uint64_t element = r.row * uint64_t(options.geometry.heads) * 128 + 7;
    const auto code = read<uint16_t>(XTK_INDEX_QUERY, 1, 0, element * 2);
    write<uint16_t>(XTK_INDEX_QUERY, element, uint16_t(code[0] ^ 1u));
  }
  if (at_end && fault == "input edited") write<float>(XTK_RESIDUAL, 3, 0.5f);
  if (fault == "table edited")
    write<int32_t>(XTK_PAGE_TABLE, uint64_t(options.table_width) - 1, 0);
  if (fault == "rope edited") write<float>(XTK_ROPE_SIN, 40, 7.0f);
  if (at_end && fault == "weight edited")
    write<float>(XTK_K_BETA, 1, 9.0f, last.layer);
  if (at_end && fault == "other layer's weight edited")
    write<float>(XTK_K_BETA, 1, 9.0f, 1 - last.layer);
  if (fault == "pad page written") write<uint8_t>(XTK_CACHE, 17, 0, last.layer);
  if (fault == "other layer's cache written")
    write<uint8_t>(XTK_CACHE, 17, 0, 1 - last.layer);
  if (fault == "pad row's x written")
    write<uint16_t>(XTK_X, pad_row() * uint64_t(options.geometry.hidden), 0);
  if (fault == "pad row's scores written")
    write<float>(XTK_SCORES, pad_row() * uint64_t(options.score_stride), 0.0f);
}

void xtk_candidate::spoil() {
  const Row r = row();
  spoil_scores(r);
  spoil_list(r);
  spoil_elsewhere(r);
}

uint32_t xtk_abi_version(void) { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* description) {
  if (inner().handle == nullptr) return XTK_FAILED;
  const xtk_status status = INNER(xtk_describe)(description);
  static const char* const arms[] = {"base", "twin", nullptr};
  description->name = "faulty";
  description->arms = arms;
  const std::string fault = fault_name();
  if (fault == "hides x") description->published &= ~(uint64_t{1} << XTK_X);
  if (fault == "hides query")
    description->published &= ~(uint64_t{1} << XTK_INDEX_QUERY);
  if (fault == "hides scores")
    description->published &= ~(uint64_t{1} << XTK_SCORES);
  if (fault == "score past n, as it says") description->clobbers_score_tail = 1;
  if (fault == "promises a set") description->contract = "set";
  return status;
}

xtk_status xtk_open(const xtk_open_options* options,
                    xtk_candidate** candidate) {
  auto* made = new xtk_candidate;
  made->fault = fault_name();
  if (made->fault == "score past n, as it says") made->fault = "score past n";
  if (made->fault == "promises a set") made->fault = "list swapped";
  made->options = *options;
  const xtk_status status = INNER(xtk_open)(options, &made->wrapped);
  if (status == XTK_OK)
    *candidate = made;
  else
    delete made;
  return status;
}

const char* xtk_last_error(const xtk_candidate* candidate) {
  if (candidate != nullptr && candidate->fault == "launch fails")
    return "the planted deadlock";
  return INNER(xtk_last_error)(candidate == nullptr ? nullptr
                                                    : candidate->wrapped);
}

void xtk_close(xtk_candidate* candidate) {
  candidate->catch_up();
  INNER(xtk_close)(candidate->wrapped);
  delete candidate;
}

uint64_t xtk_tensor_bytes(const xtk_candidate* candidate, xtk_tensor tensor) {
  if (candidate->fault == "small buffer" && tensor == XTK_SCORES) return 16;
  return INNER(xtk_tensor_bytes)(candidate->wrapped, tensor);
}

xtk_status xtk_write(xtk_candidate* c, xtk_tensor tensor, int32_t layer,
                     uint64_t offset, uint64_t bytes, const void* source) {
  const auto changed = kChangedWeights.find(c->fault);
  if (changed == kChangedWeights.end() || changed->second != tensor)
    return INNER(xtk_write)(c->wrapped, tensor, layer, offset, bytes, source);
  const auto* from = static_cast<const std::byte*>(source);
  c->shown[layer].assign(from, from + bytes);
  Bytes altered = c->shown[layer];
  if (tensor == XTK_WQ_B || tensor == XTK_WK) {
    const uint16_t code =
        0x3F00;  // 0.5, where elements are of the order of 0.1
    std::memcpy(altered.data() + 10, &code, sizeof code);
  } else {
    float value = 0;
    std::memcpy(&value, altered.data() + 20, sizeof value);
    value += 0.5f;
    std::memcpy(altered.data() + 20, &value, sizeof value);
  }
  return INNER(xtk_write)(c->wrapped, tensor, layer, offset, bytes,
                          altered.data());
}

xtk_status xtk_read(xtk_candidate* c, xtk_tensor tensor, int32_t layer,
                    uint64_t offset, uint64_t bytes, void* destination) {
  const auto changed = kChangedWeights.find(c->fault);
  if (changed == kChangedWeights.end() || changed->second != tensor)
    return INNER(xtk_read)(c->wrapped, tensor, layer, offset, bytes,
                           destination);
  std::memcpy(destination, c->shown[layer].data() + offset, bytes);
  return XTK_OK;
}

const void* xtk_view(xtk_candidate* c, xtk_tensor tensor, int32_t layer) {
  if (c->fault == "no view") return nullptr;
  const auto changed = kChangedWeights.find(c->fault);
  if (changed != kChangedWeights.end() && changed->second == tensor)
    return c->shown[layer].data();
  return INNER(xtk_view)(c->wrapped, tensor, layer);
}

xtk_status xtk_launch(xtk_candidate* c, const xtk_launch_args* args) {
  if (c->fault == "launch fails") return XTK_FAILED;
  if (c->fault == "launch refused") return XTK_INVALID;
  if (c->fault == "launch throws")
    throw std::runtime_error("the planted exception");
  c->last = *args;
  c->list_before = c->read<std::byte>(
      XTK_LIST, size_t(c->options.list_entries) * sizeof(int32_t));
  xtk_launch_args forwarded = *args;
  forwarded.arm = "base";
  ++c->launches;
  if (c->fault == "does nothing") return XTK_OK;
  return INNER(xtk_launch)(c->wrapped, &forwarded);
}

xtk_status xtk_wait(xtk_candidate* c) {
  const xtk_status status = INNER(xtk_wait)(c->wrapped);
  if (status == XTK_OK) c->spoil();
  return status;
}

xtk_status xtk_select(xtk_candidate* c, const xtk_select_args* args) {
  xtk_select_args forwarded = *args;
  forwarded.arm = "base";
  const auto whole = size_t(args->list_entries);
  const std::vector<int32_t> found_before(args->list, args->list + whole);
  c->catch_up();
  const xtk_status status = INNER(xtk_select)(c->wrapped, &forwarded);
  if (c->fault == "answers late") {
    const int32_t first = args->indptr[0];
    const auto entries = size_t(std::min(args->lengths[0], args->k));
    c->late_to = args->list + first;
    c->late.assign(c->late_to, c->late_to + entries);
    std::copy_n(found_before.begin() + first, entries, c->late_to);
    return status;
  }
  if (c->fault == "remembers")
    c->recall(args->scores, args->list + args->indptr[0],
              size_t(std::min(args->lengths[0], args->k)) * sizeof(int32_t));
  if (c->fault == "row start edited")
    const_cast<int64_t*>(args->row_start)[1] = 0;
  if (c->fault == "length edited") const_cast<int32_t*>(args->lengths)[1] = 1;
  if (c->fault == "indptr edited") ++const_cast<int32_t*>(args->indptr)[1];
  if (c->fault == "list past the buffer") args->list[whole + 2] = 0;
  int32_t* list = args->list + args->indptr[0];
  if (c->fault == "list swapped") std::swap(list[0], list[1]);
  if (c->fault == "list duplicate") list[1] = list[0];
  if (c->fault == "list out of range") list[0] = args->lengths[0];
  if (c->fault == "list guard before") list[-1] = 0;
  if (c->fault == "list before the buffer") args->list[-2] = 0;
  if (c->fault == "input edited") const_cast<float*>(args->scores)[0] = 1.0f;
  if (c->fault == "repeat" && ++c->launches == 3) std::swap(list[0], list[1]);
  return status;
}

xtk_status xtk_prepare_replay(xtk_candidate* c, const xtk_replay_args* args) {
  const xtk_replay_args forwarded = c->passed_on(*args);
  return INNER(xtk_prepare_replay)(c->wrapped, &forwarded);
}

xtk_status xtk_replay(xtk_candidate* c, const xtk_replay_args* args,
                      double* microseconds) {
  *microseconds = 10;
  if (c->fault == "replay nothing") return XTK_OK;
  const std::string part = args->part == nullptr ? "" : args->part;
  if (!part.empty() && c->fault == "replay no " + part) return XTK_OK;
  const xtk_replay_args forwarded = c->passed_on(*args);
  const xtk_status status =
      INNER(xtk_replay)(c->wrapped, &forwarded, microseconds);
  if (c->fault == "replay claims half") *microseconds /= 2;
  return status;
}

xtk_status xtk_score(xtk_candidate* c, const xtk_score_args* args) {
  xtk_score_args forwarded = *args;
  forwarded.arm = "base";
  const xtk_status status = INNER(xtk_score)(c->wrapped, &forwarded);
  const auto row =
      size_t(std::max_element(args->lengths, args->lengths + args->rows) -
             args->lengths);
  float* scores = args->scores + row * size_t(args->score_stride);
  if (c->fault == "score bit") scores[5] = std::nextafter(scores[5], 1e9f);
  if (c->fault == "score past n") scores[args->lengths[row]] = 0;
  if (c->fault == "remembers")
    c->recall(args->index_query, scores,
              size_t(args->lengths[row]) * sizeof(float));
  // A stale entry, which no scoring reads.
  if (c->fault == "input edited")
    const_cast<int32_t*>(args->page_table)[args->table_width - 1] = 0;
  if (c->fault == "repeat" && ++c->launches == 3) scores[5] += 1.0f;
  return status;
}
