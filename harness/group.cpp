// SPDX-License-Identifier: Apache-2.0
#include "harness/group.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

namespace exact_topk::harness {
namespace {

constexpr const char* kSharedDirectory = "/dev/shm";
constexpr uint64_t kLeaveFree =
    uint64_t{64}
    << 20;  // of /dev/shm, for MPI's own segments and whoever else is there

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(fmt::format("{} failed: {}", call, text));
}

int message_bytes(uint64_t bytes) {
  if (bytes > INT_MAX)
    throw std::runtime_error(
        fmt::format("a message of {} bytes is more than MPI takes at once ({})",
                    bytes, INT_MAX));
  return static_cast<int>(bytes);
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string as_text(std::span<const std::byte> bytes) {
  std::string text(bytes.size(), '\0');
  std::transform(bytes.begin(), bytes.end(), text.begin(),
                 [](std::byte b) { return static_cast<char>(b); });
  return text;
}

std::pair<int64_t, int64_t> part(int64_t items, int rank, int size) {
  return {items * rank / size, items * (rank + 1) / size};
}

int64_t reduce(int64_t value, MPI_Op op, MPI_Comm comm) {
  int64_t all = 0;
  check(MPI_Allreduce(&value, &all, 1, MPI_INT64_T, op, comm), "MPI_Allreduce");
  return all;
}

}  // namespace

Group::Comm::Comm(MPI_Comm h) : handle(h) {
  check(MPI_Comm_split_type(handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                            &node),
        "MPI_Comm_split_type");
}

Group::Comm::~Comm() {
  if (std::uncaught_exceptions() > 0) return;
  MPI_Comm_free(&node);
  MPI_Comm_free(&handle);
}

Group::Group(MPI_Comm comm, bool emulates, int index, int count)
    : comm_(std::make_shared<const Comm>(comm)),
      emulates_(emulates),
      index_(index),
      count_(count) {
  check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
}

Group Group::world() {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
        "MPI_Comm_set_errhandler");  // inherited by what follows
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return Group(comm, false, 0, 1);
}

Group Group::of(int size) {
  int world_rank = 0, world_size = 1;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &world_size), "MPI_Comm_size");
  const bool emulates = world_size < size;
  const int ranks = emulates ? 1 : size;
  if (world_size % ranks != 0)
    throw std::invalid_argument(
        fmt::format("{} ranks are no multiple of {}", world_size, ranks));
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_split(MPI_COMM_WORLD, world_rank / ranks, world_rank, &comm),
        "MPI_Comm_split");
  return Group(comm, emulates, world_rank / ranks, world_size / ranks);
}

int Group::node_rank() const {
  int rank = 0;
  check(MPI_Comm_rank(comm_->node, &rank), "MPI_Comm_rank");
  return rank;
}

void Group::barrier() const { check(MPI_Barrier(comm()), "MPI_Barrier"); }
int64_t Group::all_reduce_min(int64_t value) const {
  return reduce(value, MPI_MIN, comm());
}
int64_t Group::all_reduce_max(int64_t value) const {
  return reduce(value, MPI_MAX, comm());
}
int64_t Group::all_reduce_sum(int64_t value) const {
  return reduce(value, MPI_SUM, comm());
}

double Group::all_reduce_max(double value) const {
  // MPI_MAX may drop a NaN, so the ranks exchange the values themselves.
  std::vector<double> all(static_cast<size_t>(size_));
  check(MPI_Allgather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm()),
        "MPI_Allgather");
  double largest = all.front();
  for (const double x : all)
    largest = std::isnan(x) || x > largest ? x : largest;
  return largest;
}

std::vector<std::byte> Group::broadcast(std::span<const std::byte> bytes,
                                        int root) const {
  uint64_t length = bytes.size();
  check(MPI_Bcast(&length, 1, MPI_UINT64_T, root, comm()), "MPI_Bcast");
  std::vector<std::byte> all(length);
  if (rank_ == root) std::copy(bytes.begin(), bytes.end(), all.begin());
  check(MPI_Bcast(all.data(), message_bytes(length), MPI_BYTE, root, comm()),
        "MPI_Bcast");
  return all;
}

std::string Group::broadcast(const std::string& text, int root) const {
  return as_text(broadcast(as_bytes(text), root));
}

std::vector<std::vector<std::byte>> Group::all_gather(
    std::span<const std::byte> bytes) const {
  const int mine = message_bytes(bytes.size());
  std::vector<int> lengths(static_cast<size_t>(size_)),
      starts(static_cast<size_t>(size_));
  check(MPI_Allgather(&mine, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm()),
        "MPI_Allgather");
  uint64_t total = 0;
  for (size_t r = 0; r < lengths.size(); ++r) {
    starts[r] = message_bytes(total);
    total += static_cast<uint64_t>(lengths[r]);
  }
  message_bytes(total);
  std::vector<std::byte> flat(total);
  check(MPI_Allgatherv(bytes.data(), mine, MPI_BYTE, flat.data(),
                       lengths.data(), starts.data(), MPI_BYTE, comm()),
        "MPI_Allgatherv");
  std::vector<std::vector<std::byte>> all;
  for (size_t r = 0; r < lengths.size(); ++r)
    all.emplace_back(flat.begin() + starts[r],
                     flat.begin() + starts[r] + lengths[r]);
  return all;
}

std::vector<std::string> Group::all_gather(const std::string& text) const {
  std::vector<std::string> all;
  for (const auto& bytes : all_gather(as_bytes(text)))
    all.push_back(as_text(bytes));
  return all;
}

bool Group::agree(uint64_t value) const {
  std::vector<uint64_t> all(static_cast<size_t>(size_));
  check(MPI_Allgather(&value, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T,
                      comm()),
        "MPI_Allgather");
  return std::all_of(all.begin(), all.end(),
                     [&](uint64_t x) { return x == all.front(); });
}

std::pair<int64_t, int64_t> Group::share(int64_t items) const {
  return part(items, rank_, size_);
}

// Either a window of the node's ranks or pages of this process alone.
struct SharedMemory::State {
  std::shared_ptr<const Group::Comm>
      comm;                       // keeps the node's communicator alive
  MPI_Win window = MPI_WIN_NULL;  // null where the copy is private
  std::byte* base = nullptr;      // first byte, on a cache line
  uint64_t bytes = 0;             // asked for
  int rank = 0, size = 1;         // among the ranks that share it

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (std::uncaught_exceptions() > 0) return;
    if (window != MPI_WIN_NULL) {
      MPI_Win_unlock_all(window);
      MPI_Win_free(&window);
    } else if (base != nullptr) {
      munmap(base, bytes);
    }
  }
};

namespace {

// Whether /dev/shm takes `bytes` for every one of `groups` groups of a node,
// which ask for about the same at about the same time. (Its pages are taken
// when they are first written: promising more than there is would end in
// SIGBUS.)
bool room_for(uint64_t bytes, int groups) {
  struct statvfs fs {};
  if (statvfs(kSharedDirectory, &fs) != 0) return false;
  const uint64_t room = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
  return room >= kLeaveFree &&
         (room - kLeaveFree) / static_cast<uint64_t>(groups) >= bytes;
}

}  // namespace

SharedMemory::SharedMemory(const Group& group, uint64_t bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.comm = group.comm_;
  s.bytes = bytes;
  const MPI_Comm node = s.comm->node;
  check(MPI_Comm_rank(node, &s.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(node, &s.size), "MPI_Comm_size");
  if (s.size > 1 && bytes > 0) {
    int room = s.rank == 0 && room_for(bytes, group.count()) ? 1 : 0;
    check(MPI_Bcast(&room, 1, MPI_INT, 0, node), "MPI_Bcast");
    if (room != 0) {
      constexpr uintptr_t kLine = 64;
      void* own = nullptr;
      const MPI_Aint mine =
          s.rank == 0 ? static_cast<MPI_Aint>(bytes + kLine) : 0;
      check(MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node, &own,
                                    &s.window),
            "MPI_Win_allocate_shared");
      check(MPI_Win_lock_all(MPI_MODE_NOCHECK, s.window), "MPI_Win_lock_all");
      MPI_Aint length = 0;
      int unit = 0;
      void* first = nullptr;
      check(MPI_Win_shared_query(s.window, 0, &length, &unit, &first),
            "MPI_Win_shared_query");
      const uintptr_t address = reinterpret_cast<uintptr_t>(first);
      s.base =
          static_cast<std::byte*>(first) + (kLine - address % kLine) % kLine;
      return;
    }
    static bool said = false;
    if (s.rank == 0 && group.index() == 0 && !std::exchange(said, true))
      fmt::print(stderr,
                 "note: {} lacks room for {} bytes, so every rank keeps a copy "
                 "of its own\n",
                 kSharedDirectory, bytes);
  }
  s.rank = 0;
  s.size = 1;
  if (bytes == 0) return;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw std::runtime_error(fmt::format("no memory for {} bytes of inputs: {}",
                                         bytes, std::strerror(errno)));
  s.base = static_cast<std::byte*>(pages);
}

SharedMemory::SharedMemory(SharedMemory&&) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&&) noexcept = default;
SharedMemory::~SharedMemory() = default;

std::span<std::byte> SharedMemory::bytes() const {
  return {state_->base, state_->bytes};
}
bool SharedMemory::shared() const { return state_->window != MPI_WIN_NULL; }

void SharedMemory::fence() const {
  if (!shared()) return;
  check(MPI_Win_sync(state_->window), "MPI_Win_sync");
  check(MPI_Barrier(state_->comm->node), "MPI_Barrier");
  check(MPI_Win_sync(state_->window), "MPI_Win_sync");
}

std::pair<int64_t, int64_t> SharedMemory::share(int64_t items) const {
  return part(items, state_->rank, state_->size);
}

void SharedMemory::fill(uint64_t offset, int64_t elements, int element_bytes,
                        const Write& write) const {
  const auto [begin, end] = share(elements);
  const auto unit = static_cast<uint64_t>(element_bytes);
  if (begin < end)
    write(begin, end,
          bytes().subspan(offset + static_cast<uint64_t>(begin) * unit,
                          static_cast<uint64_t>(end - begin) * unit));
  fence();
}

SharedMemory make_shared(const Group& group, uint64_t bytes) {
  return SharedMemory(group, bytes);
}

std::span<const std::byte> SharedInputs::get(const std::string& key,
                                             int64_t elements,
                                             int element_bytes,
                                             const SharedMemory::Write& write) {
  auto held = held_.find(key);
  if (held == held_.end()) {
    SharedMemory memory(group_, static_cast<uint64_t>(elements) *
                                    static_cast<uint64_t>(element_bytes));
    memory.fill(0, elements, element_bytes, write);
    held = held_.emplace(key, std::move(memory)).first;
  }
  return held->second.bytes();
}

}  // namespace exact_topk::harness
