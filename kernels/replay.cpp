// SPDX-License-Identifier: Apache-2.0
#include "kernels/replay.h"

#include <algorithm>
#include <optional>

#include "kernels/backend.h"
#include "kernels/device_buffer.h"

namespace exact_topk::kernels {
namespace {

class Event {
 public:
  Event() { backend::check(hipEventCreate(&event_), "hipEventCreate"); }
  ~Event() { static_cast<void>(hipEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(hipStream_t stream) {
    backend::check(hipEventRecord(event_, stream), "hipEventRecord");
  }
  // Milliseconds from this event to `end`, once that has happened.
  double until(const Event& end) const {
    backend::check(hipEventSynchronize(end.event_), "hipEventSynchronize");
    float milliseconds = 0;
    backend::check(hipEventElapsedTime(&milliseconds, event_, end.event_),
                   "hipEventElapsedTime");
    return static_cast<double>(milliseconds);
  }

 private:
  hipEvent_t event_;  // owned
};

#if defined(EXACT_TOPK_HIP_CPU)

// Work that is started when it is timed.
class Timed {
 public:
  Timed(hipStream_t stream, std::function<void()> start)
      : stream_(stream), start_(std::move(start)) {}
  double milliseconds() {
    Event begin;
    Event end;
    begin.record(stream_);
    start_();
    end.record(stream_);
    return begin.until(end);
  }

 private:
  hipStream_t stream_;           // in order
  std::function<void()> start_;  // the work
};

// There is no L2 to evict.
uint64_t evicting_bytes(int) { return 0; }
void evict(const DeviceBuffer&, hipStream_t) {}

#else

// Work captured into a graph, which can be timed once.
class Timed {
 public:
  Timed(hipStream_t stream, const std::function<void()>& start)
      : stream_(stream) {
    backend::check(
        hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal),
        "hipStreamBeginCapture");
    try {
      start();
    } catch (...) {
      static_cast<void>(hipStreamEndCapture(stream, &graph_));
      static_cast<void>(hipGraphDestroy(graph_));
      throw;
    }
    backend::check(hipStreamEndCapture(stream, &graph_), "hipStreamEndCapture");
    backend::check(hipGraphInstantiate(&exec_, graph_, nullptr, nullptr, 0),
                   "hipGraphInstantiate");
    backend::check(hipGraphUpload(exec_, stream), "hipGraphUpload");
  }
  ~Timed() {
    static_cast<void>(hipGraphExecDestroy(exec_));
    static_cast<void>(hipGraphDestroy(graph_));
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  double milliseconds() {
    Event begin;
    Event end;
    begin.record(stream_);
    backend::check(hipGraphLaunch(exec_, stream_), "hipGraphLaunch");
    end.record(stream_);
    return begin.until(end);
  }

 private:
  hipStream_t stream_;             // in order
  hipGraph_t graph_ = nullptr;     // owned
  hipGraphExec_t exec_ = nullptr;  // owned
};

uint64_t evicting_bytes(int device) {
  hipDeviceProp_t properties;
  backend::check(hipGetDeviceProperties(&properties, device),
                 "hipGetDeviceProperties");
  return 2 * static_cast<uint64_t>(properties.l2CacheSize);
}
void evict(const DeviceBuffer& buffer, hipStream_t stream) {
  backend::check(hipMemsetAsync(buffer.as<void>(), 0, buffer.bytes(), stream),
                 "hipMemsetAsync");
}

#endif

constexpr int kWarmUps = 3;  // replays before those that count

}  // namespace

struct Replay::State {
  explicit State(const ReplayRequest& r)
      : request(r),
        evicting(r.cold ? evicting_bytes(r.device) : 0, "evicting") {
    Timed(r.stream, [&] {
      start(std::min(r.replays, kWarmUps), true);
    }).milliseconds();
    all.emplace(r.stream, [this] { start(request.replays, true); });
    if (r.cold)
      evictions.emplace(r.stream, [this] { start(request.replays, false); });
  }

  void start(int replays, bool work) const {
    for (int i = 0; i < replays; ++i) {
      if (request.cold) evict(evicting, request.stream);
      if (work) request.start();
    }
  }

  ReplayRequest request;           // what is timed
  DeviceBuffer evicting;           // stored to between cold replays
  std::optional<Timed> all;        // the replays
  std::optional<Timed> evictions;  // what cold replays do besides the work
};

Replay::Replay(const ReplayRequest& request)
    : state_(std::make_unique<State>(request)) {}
Replay::~Replay() = default;
Replay::Replay(Replay&& other) noexcept = default;
Replay& Replay::operator=(Replay&& other) noexcept = default;

double Replay::microseconds() {
  const double all = state_->all->milliseconds();
  const double around =
      state_->evictions ? state_->evictions->milliseconds() : 0.0;
  return (all - around) * 1000 / state_->request.replays;
}

}  // namespace exact_topk::kernels
