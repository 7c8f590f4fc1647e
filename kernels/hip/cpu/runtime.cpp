// SPDX-License-Identifier: Apache-2.0
#include "kernels/hip/cpu/runtime.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/context/detail/fcontext.hpp>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/hip/cpu/memory.h"
#include "kernels/hip/cpu/schedule.h"
#include "kernels/hip/cpu/stack_pool.h"

namespace exact_topk::hip::cpu {

namespace context = boost::context::detail;

thread_local ThreadView* current = nullptr;

namespace {

struct Block;
struct Wave;
class Engine;

enum class State : std::uint8_t { running, barrier, collective, poll, exited };

}  // namespace

/// A GPU thread with its stack. Between blocks and launches it is parked at the
/// end of its loop and starts anew when it is switched to.
struct alignas(64) Fiber : ThreadView {
  context::fcontext_t context = nullptr;  // where it goes on
  Wave* in_wave = nullptr;                // its wave
  Engine* engine = nullptr;               // the OS thread's engine
  State state = State::exited;            // what it waits for
  bool parked = false;  // its context is at the end of its loop
  Site site;            // where it waits
  const Collective* collective = nullptr;  // the collective it waits in
  std::uint64_t mask = 0;                  // the lanes it wants to meet there
  bool (*ready)(const void*) = nullptr;    // the condition it polls
  const void* ready_arg = nullptr;         // its argument
  GuardedMemory* stack = nullptr;          // nullptr for the host's own stack
  std::size_t stack_top = 0;               // usable bytes below the first frame
#if defined(EXACT_TOPK_ASAN)
  void* fake_stack = nullptr;  // AddressSanitizer's, while switched away
  const void* stack_bottom = nullptr;  // the bounds that it is told
  std::size_t stack_bytes = 0;
#endif
#if defined(EXACT_TOPK_TSAN)
  void* tsan_fiber = nullptr;  // ThreadSanitizer's, one a GPU thread
  std::size_t tsan_slot = 0;   // its place in the engine's list
#endif
};

namespace {

struct Wave {
  Fiber* const* lanes = nullptr;    // its threads
  int width = 0;                    // lanes a wave
  std::uint64_t exist = 0;          // lanes that have a thread
  std::uint64_t live = 0;           // ... that has not exited
  std::uint64_t arrived = 0;        // ... that waits in a collective
  std::array<void*, 64> args = {};  // their arguments
};

struct Block : BlockView {
  Fiber* const* fibers = nullptr;  // its threads
  std::uint32_t threads = 0;       // their count
  std::uint32_t live = 0;          // threads that have not exited
  std::uint32_t arrived = 0;       // threads that wait at the barrier
  Site barrier_site;               // where the first of them waits
  bool divergent = false;          // another waits elsewhere
  std::uint64_t generation = 0;    // barriers completed
  void* sync =
      nullptr;  // what barriers release and acquire for ThreadSanitizer
  std::vector<Wave> waves;                  // in order
  std::unique_ptr<GuardedMemory> lds_room;  // guard, LDS, guard
  std::span<std::byte> lds_bytes;           // the LDS in it
};

std::string to_string(const Dim3& at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," +
         std::to_string(at.z) + ")";
}

std::string where(const Fiber& fiber) {
  switch (fiber.state) {
    case State::running:
      return "run";
    case State::barrier:
      return "wait at the barrier at " + to_string(fiber.site);
    case State::collective:
      return std::string("wait in ") + fiber.collective->name + " at " +
             to_string(fiber.site);
    case State::poll:
      return "wait in a poll at " + to_string(fiber.site);
    case State::exited:
      return "have exited";
  }
  return {};
}

// "threads 0-30 wait at the barrier at a.h:4, threads 31 have exited":
// everybody, grouped by what they do.
std::string who_waits_where(Fiber* const* fibers, std::size_t count) {
  struct Group {
    std::string what;    // what its threads do
    std::string ranges;  // which they are
    std::uint32_t last;  // the last of them
    std::uint32_t open;  // the first of the range that ends there
  };
  std::vector<Group> groups;
  const auto close = [](Group& g) {
    g.ranges += (g.ranges.empty() ? "" : ",") + std::to_string(g.open);
    if (g.last != g.open) g.ranges += "-" + std::to_string(g.last);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto thread = fibers[i]->thread;
    const auto what = where(*fibers[i]);
    const auto group =
        std::find_if(groups.begin(), groups.end(),
                     [&](const Group& g) { return g.what == what; });
    if (group == groups.end()) {
      groups.push_back({what, "", thread, thread});
    } else {
      if (thread != group->last + 1) {
        close(*group);
        group->open = thread;
      }
      group->last = thread;
    }
  }
  std::string text;
  for (auto& group : groups) {
    close(group);
    text += (text.empty() ? "threads " : ", threads ") + group.ranges + " " +
            group.what;
  }
  return text;
}

thread_local std::string report;

Options& mutable_options() {
  static Options instance;
  return instance;
}

[[noreturn]] void fiber_main(context::transfer_t from);

// jump_fcontext, entered by a jump. It leaves by a jump as well, so a call
// would put a return address on the processor's return stack that no return
// ever takes, and every return after a switch would be mispredicted.
inline context::transfer_t jump(context::fcontext_t to, void* data) {
#if defined(__x86_64__) && defined(__ELF__)
  void* from = nullptr;
  void* from_data = nullptr;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone stays
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "jmpq *jump_fcontext@GOTPCREL(%%rip)\n"
      "1:\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "=&a"(from), "=&d"(from_data), "+D"(to), "+S"(data)
      :
      : "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return {from, from_data};
#else
  return context::jump_fcontext(to, data);
#endif
}

// One OS thread's launches, one at a time.
class Engine {
 public:
  Engine() { main_.engine = this; }
#if defined(EXACT_TOPK_TSAN)
  ~Engine() {
    for (void* const fiber : tsan_fibers_) __tsan_destroy_fiber(fiber);
  }
#endif

  LaunchResult launch(const Kernel& kernel, const LaunchShape& shape);

  // ---- called by running threads ----
  void run_thread(Fiber& self);
  void barrier(Fiber& self, Site site);
  void meet(Fiber& self, const Collective& collective, void* arg,
            std::uint64_t mask, Site site);
  void poll(Fiber& self, bool (*ready)(const void*), const void* arg,
            Site site);
  void store_late(std::uint32_t* word, std::uint32_t value) {
    const sanitizer::Ignore own_books;  // all threads keep them together
    late_.push_back({word, value});
  }
  // Fails the launch. A thread that notes it then abandons itself, in a
  // statement of its own: no temporary may be alive that would be lost.
  void note_failure(std::string sentence);
  [[noreturn]] void abandon(Fiber& self);

  // Runs whatever comes next; returns when `self` is switched to again.
  void suspend(Fiber& self) {
    Fiber& next = queue_.empty() ? main_ : *queue_.pop();
    if (&next != &self) switch_to(self, next);
  }
  // Completes a switch: `self` runs, the thread it came from is put away.
  void landed(Fiber& self, const context::transfer_t& from);

 private:
  void reserve(std::size_t blocks, std::uint32_t threads, std::size_t lds_bytes,
               std::uint32_t grid_blocks);
  void start(Block& block, std::uint32_t index, const LaunchShape& shape);
  void run();
  bool release_ready_polls();
  void finish();
  void complete_collective(Fiber& arrival);
  void switch_to(Fiber& self, Fiber& next);
  void make_context(Fiber& fiber);
  std::string diagnose() const;

  Fiber main_;                 // the host's own thread of control
  std::deque<Fiber> fibers_;   // every fiber made so far
  std::vector<Fiber*> order_;  // the same, as waves and blocks slice them
  std::deque<GuardedMemory> stacks_;  // one a fiber
  std::size_t stack_bytes_ = 0;       // of each
  std::deque<Block> blocks_;          // blocks that live together
  std::size_t blocks_used_ = 0;       // ... in this launch
  std::vector<std::uint64_t>
      sync_cells_;  // a cell a block, under ThreadSanitizer
  // Released by the host and acquired by every thread; and the other way round.
  // Were they one, a thread would be ordered after those that ended before it.
  std::uint64_t started_ = 0;
  std::uint64_t ended_ = 0;
  struct LateStore {
    std::uint32_t* word;  // where
    std::uint32_t value;  // what
  };
  std::vector<LateStore> late_;           // stores due when the launch ends
  ReadyQueue queue_;                      // who can run
  std::vector<Fiber*> polling_;           // who waits for a condition
  std::unique_ptr<Scheduler> scheduler_;  // the order in which they do
#if defined(EXACT_TOPK_TSAN)
  // They are slow to make, so launches share them: the host orders launches.
  // The blocks of one launch do not, up to the most that there may be.
  std::vector<void*> tsan_fibers_;
  std::size_t tsan_used_ = 0;  // threads that this launch has started
#endif
  const Kernel* kernel_ = nullptr;  // what they run
  std::size_t live_ = 0;            // started threads that have not exited
  bool failed_ = false;             // this launch has a report
};

Engine& engine() {
  thread_local Engine instance;
  return instance;
}

Fiber& self() { return static_cast<Fiber&>(*current); }

inline void Engine::landed(Fiber& self, const context::transfer_t& from) {
  auto& previous = *static_cast<Fiber*>(from.data);
  previous.context = from.fctx;
#if defined(EXACT_TOPK_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &bytes);
  if (&previous == &main_) {
    main_.stack_bottom = bottom;
    main_.stack_bytes = bytes;
  }
#else
  static_cast<void>(self);
#endif
}

inline void Engine::switch_to(Fiber& self, Fiber& next) {
  // Whatever a thread did before it was put away, the host sees after the
  // launch, even if the thread never comes back.
  if (&self != &main_) sanitizer::release(&ended_);
  current = &next == &main_ ? nullptr : &next;
#if defined(EXACT_TOPK_ASAN)
  __sanitizer_start_switch_fiber(&self.fake_stack, next.stack_bottom,
                                 next.stack_bytes);
#endif
#if defined(EXACT_TOPK_TSAN)
  __tsan_switch_to_fiber(next.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
  landed(self, jump(next.context, &self));
}

void Engine::make_context(Fiber& fiber) {
  auto* const bottom = fiber.stack->bytes().data();
  fiber.context = context::make_fcontext(bottom + fiber.stack_top,
                                         fiber.stack_top, fiber_main);
  fiber.parked = true;
#if defined(EXACT_TOPK_ASAN)
  fiber.fake_stack = nullptr;
  fiber.stack_bottom = bottom;
  fiber.stack_bytes = fiber.stack_top;
#endif
}

void Engine::run_thread(Fiber& self) {
  self.parked = false;
  sanitizer::acquire(&started_);
  std::string thrown;
  try {
    kernel_->run(kernel_->arguments);
  } catch (const std::exception& error) {
    thrown = "exception in thread " + std::to_string(self.thread) +
             " of block " + to_string(self.block->index) + ": " + error.what();
  }
  if (!thrown.empty()) {
    note_failure(std::move(thrown));
    abandon(self);
  }
  self.state = State::exited;
  --live_;
  --static_cast<Block*>(self.block)->live;
  Wave& wave = *self.in_wave;
  wave.live &= ~(std::uint64_t{1} << self.lane);
  for (std::uint64_t rest = wave.arrived; rest != 0;) {
    Fiber& waiting = *wave.lanes[std::countr_zero(rest)];
    rest &= ~waiting.mask;
    complete_collective(waiting);
  }
  self.parked = true;
}

[[noreturn]] void fiber_main(context::transfer_t from) {
  Fiber& me = self();
  Engine& home = *me.engine;
  home.landed(me, from);
  for (;;) {
    home.run_thread(me);
    home.suspend(me);
  }
}

inline void Engine::barrier(Fiber& self, Site site) {
  auto& block = static_cast<Block&>(*self.block);
  self.state = State::barrier;
  self.site = site;
  if (block.arrived == 0) block.barrier_site = site;
  block.divergent |= block.barrier_site != site;
  sanitizer::release(block.sync);
  if (++block.arrived == block.threads) {
    if (block.divergent) {
      note_failure("divergent barrier in block " + to_string(block.index) +
                   ", generation " + std::to_string(block.generation) + ": " +
                   who_waits_where(block.fibers, block.threads));
      abandon(self);
    }
    block.arrived = 0;
    ++block.generation;
    scheduler_->release(queue_, block.fibers, block.threads);
  }
  suspend(self);
  self.state = State::running;
  sanitizer::acquire(block.sync);
}

inline void Engine::meet(Fiber& self, const Collective& collective, void* arg,
                         std::uint64_t mask, Site site) {
  Wave& wave = *self.in_wave;
  self.state = State::collective;
  self.site = site;
  self.collective = &collective;
  self.mask = mask;
  wave.args[self.lane] = arg;
  wave.arrived |= std::uint64_t{1} << self.lane;
  if ((mask >> self.lane & 1) == 0) {
    note_failure(std::string("mask without its caller in ") + collective.name +
                 " at " + to_string(site) + ": lane " +
                 std::to_string(self.lane));
    abandon(self);
  }
  const std::uint64_t expected = mask & wave.live;
  if ((wave.arrived & expected) == expected) complete_collective(self);
  suspend(self);
  self.state = State::running;
}

// The sentence about a lane that reads one not present, if there is such a
// lane.
std::string inactive_source(const Wave& wave, const Collective& collective,
                            std::uint64_t present) {
  const sanitizer::Ignore others_memory;
  if (collective.source == nullptr) return {};
  for (std::uint64_t rest = present; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const int source =
        collective.source(wave.args[static_cast<std::size_t>(lane)], lane);
    if (source >= 0 && source < wave.width && (present >> source & 1) != 0)
      continue;
    const Fiber& reader = *wave.lanes[lane];
    const auto threads = static_cast<std::size_t>(std::popcount(wave.exist));
    return std::string(collective.name) + " from an inactive lane in block " +
           to_string(reader.block->index) + ", wave " +
           std::to_string(reader.wave) + ": lane " + std::to_string(lane) +
           " reads lane " + std::to_string(source) + " at " +
           to_string(reader.site) + " while " +
           who_waits_where(wave.lanes, threads);
  }
  return {};
}

// Computes the collective that `arrival` waits in if everybody it waits for is
// there.
void Engine::complete_collective(Fiber& arrival) {
  Wave& wave = *arrival.in_wave;
  const std::uint64_t present = arrival.mask & wave.live;
  if ((wave.arrived & present) != present) return;
  std::array<Fiber*, 64> group;
  std::size_t count = 0;
  bool same = true;
  for (std::uint64_t rest = present; rest != 0; rest &= rest - 1) {
    Fiber* const lane = wave.lanes[std::countr_zero(rest)];
    same &= lane->site == arrival.site &&
            lane->collective == arrival.collective &&
            lane->mask == arrival.mask;
    group[count++] = lane;
  }
  const auto in_wave = [&] {
    return " in block " + to_string(arrival.block->index) + ", wave " +
           std::to_string(arrival.wave) + ": ";
  };
  const auto everybody = [&] {
    return who_waits_where(wave.lanes,
                           static_cast<std::size_t>(std::popcount(wave.exist)));
  };
  const Collective& collective = *arrival.collective;
  if (!same) {
    note_failure("divergent collective" + in_wave() + everybody());
    abandon(self());
  }
  if (collective.whole && count != static_cast<std::size_t>(wave.width)) {
    note_failure(std::string(collective.name) + " of " + std::to_string(count) +
                 " lanes, not " + std::to_string(wave.width) + "," + in_wave() +
                 everybody());
    abandon(self());
  }
  if (auto sentence = inactive_source(wave, collective, present);
      !sentence.empty()) {
    note_failure(std::move(sentence));
    abandon(self());
  }
  {
    const sanitizer::Ignore others_memory;
    collective.compute({wave.args.data(), present, wave.width});
  }
  wave.arrived &= ~present;
  scheduler_->release(queue_, group.data(), count);
}

void Engine::poll(Fiber& self, bool (*ready)(const void*), const void* arg,
                  Site site) {
  self.state = State::poll;
  self.site = site;
  self.ready = ready;
  self.ready_arg = arg;
  polling_.push_back(&self);
  suspend(self);
  self.state = State::running;
}

void Engine::note_failure(std::string sentence) {
  report = std::move(sentence);
  failed_ = true;
}

void Engine::abandon(Fiber& self) {
  self.parked = false;
  switch_to(self, main_);
  std::terminate();  // an abandoned thread is never switched to
}

bool Engine::release_ready_polls() {
  const auto waits = [](Fiber* fiber) {
    return !fiber->ready(fiber->ready_arg);
  };
  const auto first_ready =
      std::stable_partition(polling_.begin(), polling_.end(), waits);
  if (first_ready == polling_.end()) return false;
  scheduler_->release(queue_, &*first_ready,
                      static_cast<std::size_t>(polling_.end() - first_ready));
  polling_.erase(first_ready, polling_.end());
  return true;
}

// Runs the started blocks until all their threads have exited or the launch has
// failed.
void Engine::run() {
  while (live_ > 0 && !failed_) {
    if (!queue_.empty()) {
      switch_to(main_, *queue_.pop());
    } else if (!release_ready_polls()) {
      note_failure(diagnose());
    }
  }
}

// Nothing can run: who is to blame. A thread that polls may be the innocent
// victim, so it is blamed last.
std::string Engine::diagnose() const {
  for (std::size_t b = 0; b < blocks_used_; ++b) {
    const Block& block = blocks_[b];
    for (const Wave& wave : block.waves) {
      if (wave.arrived == 0) continue;
      const Fiber& waiting = *wave.lanes[std::countr_zero(wave.arrived)];
      const std::uint64_t missing = waiting.mask & wave.live & ~wave.arrived;
      bool some_poll = false;
      for (std::uint64_t rest = missing; rest != 0; rest &= rest - 1)
        some_poll |= wave.lanes[std::countr_zero(rest)]->state == State::poll;
      if (some_poll) continue;
      if (auto sentence =
              inactive_source(wave, *waiting.collective, wave.arrived);
          !sentence.empty())
        return sentence;
      return "incomplete collective in block " + to_string(block.index) +
             ", wave " + std::to_string(waiting.wave) + ": " +
             who_waits_where(wave.lanes, static_cast<std::size_t>(
                                             std::popcount(wave.exist)));
    }
    if (block.arrived > 0 && block.live < block.threads)
      return "exit before a barrier in block " + to_string(block.index) +
             ", generation " + std::to_string(block.generation) + ": " +
             who_waits_where(block.fibers, block.threads);
  }
  struct PollSite {
    Site site;            // where
    std::size_t threads;  // how many
    const Fiber* first;   // the first of them
  };
  std::vector<PollSite> sites;
  for (const Fiber* fiber : polling_) {
    const auto known =
        std::find_if(sites.begin(), sites.end(),
                     [&](const auto& s) { return s.site == fiber->site; });
    if (known == sites.end()) {
      sites.push_back({fiber->site, 1, fiber});
    } else {
      ++known->threads;
    }
  }
  std::string text = "deadlock of polls: no thread can go on, " +
                     std::to_string(live_) + " have not exited";
  for (const auto& site : sites)
    text += ", " + std::to_string(site.threads) + " poll at " +
            to_string(site.site) + " (the first is thread " +
            std::to_string(site.first->thread) + " of block " +
            to_string(site.first->block->index) + ")";
  return text;
}

void Engine::reserve(std::size_t blocks, std::uint32_t threads,
                     std::size_t lds_bytes, std::uint32_t grid_blocks) {
  if (options().stack_bytes != stack_bytes_) {
    order_.clear();
    fibers_.clear();
    stacks_.clear();
    stack_bytes_ = options().stack_bytes;
  }
  while (order_.size() < blocks * threads) {
    // Stacks are a power of two apart: staggered tops keep their frames out of
    // each other's cache sets.
    constexpr std::size_t kLine = 64;
    const std::size_t stagger = order_.size() * 5 % 64 * kLine;
    stacks_.emplace_back(stack_bytes_ + 64 * kLine);
    Fiber& fiber = fibers_.emplace_back();
    fiber.engine = this;
    fiber.stack = &stacks_.back();
    fiber.stack_top = stack_bytes_ + stagger;
    make_context(fiber);
    order_.push_back(&fiber);
  }
  while (blocks_.size() < blocks) blocks_.emplace_back();
  blocks_used_ = blocks;
  for (std::size_t b = 0; b < blocks; ++b)
    blocks_[b].fibers = order_.data() + b * threads;
  const std::size_t room = lds_bytes + 2 * kGuardBytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    Block& block = blocks_[b];
    if (block.lds_room == nullptr || block.lds_room->bytes().size() < room)
      block.lds_room = std::make_unique<GuardedMemory>(room);
  }
  if (sanitizer::kThread && sync_cells_.size() < grid_blocks)
    sync_cells_.resize(grid_blocks);
  queue_.reset(blocks * threads);
  polling_.clear();
  polling_.reserve(blocks * threads);
}

void Engine::start(Block& block, std::uint32_t index,
                   const LaunchShape& shape) {
  const Dim3& grid = shape.grid;
  block.index =
      Dim3(index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y);
  block.dim = shape.block;
  block.grid = grid;
  block.wave_size = options().wave_size;
  block.threads = shape.block.x * shape.block.y * shape.block.z;
  block.live = block.threads;
  block.arrived = 0;
  block.divergent = false;
  block.generation = 0;
  if constexpr (sanitizer::kThread) block.sync = &sync_cells_[index];
  block.lds_room->forget();
  block.lds_bytes =
      block.lds_room->bytes().subspan(kGuardBytes, shape.lds_bytes);
  block.lds = block.lds_bytes.data();
  fill_pattern(block.lds_bytes, options().seed ^ std::uint64_t{index} << 32);
  arm_guards(block.lds_bytes);

  const auto width = static_cast<std::uint32_t>(block.wave_size);
  block.waves.resize((block.threads + width - 1) / width);
  for (std::uint32_t w = 0; w < block.waves.size(); ++w) {
    Wave& wave = block.waves[w];
    const std::uint32_t lanes = std::min(width, block.threads - w * width);
    wave.lanes = block.fibers + w * width;
    wave.width = block.wave_size;
    wave.exist = wave.live = ~std::uint64_t{0} >> (64 - lanes);
    wave.arrived = 0;
  }
  for (std::uint32_t t = 0; t < block.threads; ++t) {
    Fiber& fiber = *block.fibers[t];
    fiber.index = Dim3(t % block.dim.x, t / block.dim.x % block.dim.y,
                       t / block.dim.x / block.dim.y);
    fiber.block = &block;
    fiber.thread = t;
    fiber.lane = t % width;
    fiber.wave = t / width;
    fiber.in_wave = &block.waves[t / width];
    fiber.state = State::running;
#if defined(EXACT_TOPK_TSAN)
    fiber.stack->forget();
    make_context(fiber);
    fiber.tsan_slot = tsan_used_++ % kMostThreads;
    if (fiber.tsan_slot == tsan_fibers_.size())
      tsan_fibers_.push_back(__tsan_create_fiber(0));
    fiber.tsan_fiber = tsan_fibers_[fiber.tsan_slot];
#endif
  }
  live_ += block.threads;
  scheduler_->release(queue_, block.fibers, block.threads);
}

// After run(): checks what the blocks left behind and puts every thread back to
// the end of its loop.
void Engine::finish() {
  for (std::size_t b = 0; b < blocks_used_; ++b) {
    Block& block = blocks_[b];
    const auto offset = damaged_guard(block.lds_bytes);
    disarm_guards(block.lds_bytes);
    if (offset && !failed_) {
      note_failure("write outside the LDS of block " + to_string(block.index) +
                   " of " + std::to_string(block.lds_bytes.size()) +
                   " bytes: first overwritten byte at offset " +
                   std::to_string(*offset));
    }
    for (std::uint32_t t = 0; t < block.threads; ++t) {
      Fiber& fiber = *block.fibers[t];
      if (fiber.parked) continue;
      fiber.stack->forget();
      make_context(fiber);
#if defined(EXACT_TOPK_TSAN)
      __tsan_destroy_fiber(fiber.tsan_fiber);  // with its call stack
      tsan_fibers_[fiber.tsan_slot] = __tsan_create_fiber(0);
#endif
    }
  }
  live_ = 0;
}

LaunchResult Engine::launch(const Kernel& kernel, const LaunchShape& shape) {
  const auto product = [](const Dim3& d) {
    return std::uint64_t{d.x} * d.y * d.z;
  };  // overflow: each is checked
  for (const std::uint32_t size : {shape.grid.x, shape.grid.y, shape.grid.z,
                                   shape.block.x, shape.block.y, shape.block.z})
    if (size == 0 || size > 1u << 20)
      return LaunchResult::invalid_configuration;
  const std::uint64_t blocks = product(shape.grid);
  const std::uint64_t threads = product(shape.block);
  if (threads > kMostBlockThreads || blocks > UINT32_MAX ||
      shape.lds_bytes > kLdsBytes)
    return LaunchResult::invalid_configuration;
  if (shape.cooperative && blocks * threads > kMostThreads)
    return LaunchResult::too_large;

  // The host looks into the threads' stacks (conditions of polls) and at
  // guards.
  const sanitizer::Ignore others_memory;
  failed_ = false;
  late_.clear();
  kernel_ = &kernel;
  scheduler_ = parse_schedule(options().schedule);
  const auto grid_blocks = static_cast<std::uint32_t>(blocks);
  reserve(shape.cooperative ? blocks : 1, static_cast<std::uint32_t>(threads),
          shape.lds_bytes, grid_blocks);
#if defined(EXACT_TOPK_TSAN)
  main_.tsan_fiber = __tsan_get_current_fiber();
  tsan_used_ = 0;
#endif
  sanitizer::release(&started_);
  const auto order = scheduler_->block_order(grid_blocks);
  if (shape.cooperative) {
    for (std::size_t b = 0; b < blocks; ++b) start(blocks_[b], order[b], shape);
    run();
    finish();
  } else {
    for (std::size_t b = 0; b < blocks && !failed_; ++b) {
      start(blocks_.front(), order[b], shape);
      run();
      finish();
    }
  }
  sanitizer::acquire(&ended_);
  for (const LateStore& store : late_)
    __atomic_store_n(store.word, store.value, __ATOMIC_RELAXED);
  if (auto sentence = check_allocations(); sentence && !failed_) {
    note_failure(std::move(*sentence));
  }
  return failed_ ? LaunchResult::failed : LaunchResult::success;
}

}  // namespace

std::string to_string(const Site& site) {
  const std::string file = site.file;
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
}

void set_options(const Options& wanted) {
  if (wanted.wave_size != 32 && wanted.wave_size != 64)
    throw std::invalid_argument("wave size " +
                                std::to_string(wanted.wave_size) +
                                " is neither 32 nor 64");
  if (wanted.compute_units < 1 || wanted.compute_units > 256)
    throw std::invalid_argument(std::to_string(wanted.compute_units) +
                                " compute units are not within 1 to 256");
  if (wanted.stack_bytes < 16 << 10 || wanted.stack_bytes > 16 << 20)
    throw std::invalid_argument("a stack of " +
                                std::to_string(wanted.stack_bytes) +
                                " bytes is not within 16 KiB to 16 MiB");
  static_cast<void>(parse_schedule(wanted.schedule));
  mutable_options() = wanted;
}

const Options& options() { return mutable_options(); }

const std::string& last_report() { return report; }

void set_report(std::string sentence) { report = std::move(sentence); }

void barrier(Site site) {
  Fiber& me = self();
  me.engine->barrier(me, site);
}

void meet(const Collective& collective, void* arg, std::uint64_t mask,
          Site site) {
  Fiber& me = self();
  me.engine->meet(me, collective, arg, mask, site);
}

void wait_until(bool (*ready)(const void* arg), const void* arg, Site site) {
  Fiber& me = self();
  me.engine->poll(me, ready, arg, site);
}

void store_late(std::uint32_t* word, std::uint32_t value) {
  self().engine->store_late(word, value);
}

void fail_wave_size(int compiled_for) {
  Fiber& me = self();
  me.engine->note_failure(
      "a kernel for waves of " + std::to_string(compiled_for) +
      " lanes runs with waves of " + std::to_string(me.block->wave_size));
  me.engine->abandon(me);
}

LaunchResult launch(const Kernel& kernel, const LaunchShape& shape) {
  return engine().launch(kernel, shape);
}

}  // namespace exact_topk::hip::cpu
