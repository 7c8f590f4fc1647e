// SPDX-License-Identifier: Apache-2.0
//
// A selector on an NVIDIA GPU: one radix sort of all rows, by CUB. Exact,
// sorted by score, and repeatable: sort keys are (row, radix key of the score),
// and CUB's radix sort is stable, so that ties stay in the order of positions.
// It sorts far more than it must; what it is for is to be copied.
//
//     nvcc -std=c++17 -O2 -gencode arch=compute_90a,code=sm_90a -cudart static
//         -shared -Xcompiler -fPIC $(pkg-config --cflags exact_topk)
//         cub_topk.cu -o cub_topk.so
//     check_topk --candidate ./cub_topk.so --stage select
//     time_topk --candidate ./cub_topk.so --stage select --rows-from random
//
// The ABI's pointers are host memory: xtk_select copies the rows to the device,
// does the work, waits and copies the lists back. xtk_replay captures the work
// alone, without the copies, in a graph and times its launches between events.
#include <cuda_runtime.h>
#include <exact_topk/candidate.h>

#include <algorithm>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " +
                             cudaGetErrorString(error));
}

// Device memory that grows and never shrinks.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(data_); }

  T* room(size_t count) {
    if (count <= capacity_) return data_;
    check(cudaFree(data_), "cudaFree");
    data_ = nullptr;
    capacity_ = 0;
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    capacity_ = count;
    return data_;
  }
  T* copy(const T* source, size_t count, cudaStream_t stream) {
    T* data = room(count);
    check(cudaMemcpyAsync(data, source, count * sizeof(T),
                          cudaMemcpyHostToDevice, stream),
          "copy to the device");
    return data;
  }
  uint64_t bytes() const { return capacity_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t capacity_ = 0;  // elements
};

// One selection in device memory, as kernels see it.
struct Work {
  int rows = 0;                         // R
  int k = 0;                            // entries of a full row
  int table_width = 0;                  // columns of the page table
  int key_bits = 0;                     // of a sort key: 32 and those of a row
  int64_t total = 0;                    // scores of all rows
  int32_t longest = 0;                  // n of the longest row
  const float* scores = nullptr;        // as the caller has them
  const int64_t* row_start = nullptr;   // [R]: into scores
  const int32_t* lengths = nullptr;     // [R]
  const int64_t* first = nullptr;       // [R]: into keys and positions
  const int32_t* page_table = nullptr;  // [R][table_width] or null
  uint64_t* keys = nullptr;             // [total]: to be sorted
  int32_t* positions = nullptr;         // [total]: their positions
  uint64_t* sorted_keys = nullptr;      // [total]
  int32_t* sorted_positions = nullptr;  // [total]
  int32_t* list = nullptr;              // [R][k]
  void* temporary = nullptr;            // of the sort
  size_t temporary_bytes = 0;           // likewise
};

// Row 0 is to come first of a descending sort. -0 and +0 are two keys here; to
// CUB's own order of floats they are one.
__global__ void make_keys(Work w) {
  const int r = blockIdx.y;
  const float* scores = w.scores + w.row_start[r];
  for (int p = blockIdx.x * blockDim.x + threadIdx.x; p < w.lengths[r];
       p += gridDim.x * blockDim.x) {
    const uint32_t bits = __float_as_uint(scores[p]);
    const uint32_t key = bits >> 31 ? ~bits : bits | 0x80000000u;
    w.keys[w.first[r] + p] = static_cast<uint64_t>(w.rows - 1 - r) << 32 | key;
    w.positions[w.first[r] + p] = p;
  }
}

__global__ void take_best(Work w) {
  const int r = blockIdx.y;
  const int entries = min(w.lengths[r], w.k);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < entries;
       i += gridDim.x * blockDim.x) {
    const int32_t p = w.sorted_positions[w.first[r] + i];
    const int32_t* pages =
        w.page_table ? w.page_table + int64_t{r} * w.table_width : nullptr;
    w.list[int64_t{r} * w.k + i] = pages ? pages[p / 64] * 64 + p % 64 : p;
  }
}

__global__ void do_nothing() {}

constexpr int kThreads = 256;

dim3 blocks_for(int32_t items, int rows) {
  return dim3(std::min((items + kThreads - 1) / kThreads, 1024), rows);
}

cudaError_t sort(const Work& w, void* temporary, size_t& bytes,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairsDescending(
      temporary, bytes, w.keys, w.sorted_keys, w.positions, w.sorted_positions,
      w.total, 0, w.key_bits, stream);
}

void enqueue(const Work& w, cudaStream_t stream) {
  if (w.total == 0) return;
  make_keys<<<blocks_for(w.longest, w.rows), kThreads, 0, stream>>>(w);
  check(cudaGetLastError(), "make_keys");
  size_t bytes = w.temporary_bytes;
  check(sort(w, w.temporary, bytes, stream), "the sort");
  take_best<<<blocks_for(w.k, w.rows), kThreads, 0, stream>>>(w);
  check(cudaGetLastError(), "take_best");
}

// The same blocks, doing nothing.
void enqueue_empty(const Work& w, cudaStream_t stream) {
  if (w.total == 0) return;
  do_nothing<<<blocks_for(w.longest, w.rows), kThreads, 0, stream>>>();
  check(cudaGetLastError(), "do_nothing");
}

// What CUDA hands out, given back.
struct Event {
  cudaEvent_t event = nullptr;
  Event() { check(cudaEventCreate(&event), "cudaEventCreate"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event); }
};

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (run) cudaGraphExecDestroy(run);
    if (graph) cudaGraphDestroy(graph);
  }
};

thread_local std::string open_error;  // of the last xtk_open

// Runs `body`; what it throws becomes the sentence of XTK_FAILED.
template <typename Body>
xtk_status guarded(std::string& sentence, Body body) {
  try {
    return body();
  } catch (const std::exception& failure) {
    sentence = failure.what();
    return XTK_FAILED;
  }
}

}  // namespace

struct xtk_candidate {
  int device = 0;  // every call makes it the thread's
  cudaStream_t stream = nullptr;
  Work last;                     // what xtk_replay repeats
  std::unique_ptr<Graph> graph;  // of `last`, once captured
  bool graph_is_empty = false;   // it does nothing
  size_t cache = 0;              // bytes that evict the L2
  std::string error;
  Buffer<float> scores;
  Buffer<int64_t> row_start, first;
  Buffer<int32_t> lengths, page_table, positions, sorted_positions, list;
  Buffer<uint64_t> keys, sorted_keys;
  Buffer<char> temporary, evicted;

  ~xtk_candidate() {
    if (stream) cudaStreamDestroy(stream);
  }
  void prepare(const xtk_select_args& args);
  void select(const xtk_select_args& args);
  void make_ready(bool empty, bool cold);
  double replay(const xtk_replay_args& args, bool empty);
};

// Copies the rows to the device and makes room for everything else.
void xtk_candidate::prepare(const xtk_select_args& args) {
  // Buffers may move: there is nothing to repeat until all are ready.
  last = {};
  graph.reset();
  const size_t rows = static_cast<size_t>(args.rows);
  Work w;
  w.rows = args.rows;
  w.k = args.k;
  w.table_width = args.table_width;
  std::vector<int64_t> begins;
  for (int32_t r = 0; r < args.rows; ++r) {
    begins.push_back(w.total);
    w.total += args.lengths[r];
    w.longest = std::max(w.longest, args.lengths[r]);
  }
  w.key_bits = 32;
  while (w.key_bits < 64 && (w.rows - 1) >> (w.key_bits - 32) != 0)
    ++w.key_bits;
  w.scores =
      scores.copy(args.scores, static_cast<size_t>(args.scores_count), stream);
  w.row_start = row_start.copy(args.row_start, rows, stream);
  w.lengths = lengths.copy(args.lengths, rows, stream);
  w.first = first.copy(begins.data(), rows, stream);
  if (args.page_table)
    w.page_table = page_table.copy(
        args.page_table, rows * static_cast<size_t>(args.table_width), stream);
  const size_t total = static_cast<size_t>(w.total);
  w.keys = keys.room(total);
  w.positions = positions.room(total);
  w.sorted_keys = sorted_keys.room(total);
  w.sorted_positions = sorted_positions.room(total);
  w.list = list.room(rows * static_cast<size_t>(args.k));
  check(sort(w, nullptr, w.temporary_bytes, stream), "the sort's demand");
  w.temporary = temporary.room(w.temporary_bytes);
  // `begins` must outlive its copy.
  check(cudaStreamSynchronize(stream), "copy to the device");
  last = w;
}

void xtk_candidate::select(const xtk_select_args& args) {
  prepare(args);
  enqueue(last, stream);
  std::vector<int32_t> lists(static_cast<size_t>(args.rows) *
                             static_cast<size_t>(args.k));
  check(cudaMemcpyAsync(lists.data(), last.list, lists.size() * sizeof(int32_t),
                        cudaMemcpyDeviceToHost, stream),
        "copy from the device");
  // Whoever returns before this answers late.
  check(cudaStreamSynchronize(stream), "the selection");
  for (int32_t r = 0; r < args.rows; ++r)
    std::copy_n(lists.begin() + int64_t{r} * args.k,
                std::min(args.lengths[r], args.k), args.list + args.indptr[r]);
}

void xtk_candidate::make_ready(bool empty, bool cold) {
  if (cold) {
    int l2 = 0;
    check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device),
          "size of the L2 cache");
    cache = 2 * static_cast<size_t>(l2);
    evicted.room(cache);
  }
  if (graph && graph_is_empty == empty) return;
  graph = std::make_unique<Graph>();
  graph_is_empty = empty;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
        "begin of the capture");
  if (empty)
    enqueue_empty(last, stream);
  else
    enqueue(last, stream);
  check(cudaStreamEndCapture(stream, &graph->graph), "end of the capture");
  check(cudaGraphInstantiate(&graph->run, graph->graph, 0), "the graph");
  check(cudaGraphLaunch(graph->run, stream), "a first launch");
  check(cudaStreamSynchronize(stream), "a first launch");
}

double xtk_candidate::replay(const xtk_replay_args& args, bool empty) {
  make_ready(empty, args.cold != 0);
  const Event begin, end;
  // Warm launches stand side by side between two events; a cold one has its
  // own, so that the eviction is outside.
  const int timed = args.cold ? args.replays : 1;
  const int launches = args.cold ? 1 : args.replays;
  double milliseconds = 0;
  for (int t = 0; t < timed; ++t) {
    if (args.cold)
      check(cudaMemsetAsync(evicted.room(cache), t & 0xFF, cache, stream),
            "eviction");
    check(cudaEventRecord(begin.event, stream), "an event");
    for (int i = 0; i < launches; ++i)
      check(cudaGraphLaunch(graph->run, stream), "a replay");
    check(cudaEventRecord(end.event, stream), "an event");
    check(cudaEventSynchronize(end.event), "the replays");
    float passed = 0;
    check(cudaEventElapsedTime(&passed, begin.event, end.event), "the time");
    milliseconds += passed;
  }
  return milliseconds * 1e3 / args.replays;
}

uint32_t xtk_abi_version(void) { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* d) {
  static const char* const arms[] = {"sort", nullptr};
  d->name = "CUB radix sort";
  d->version = "1";
  d->device = "nvidia";
  d->stages = XTK_STAGE_SELECT;
  d->wave_sizes = 32;
  d->repeatable = 1;
  d->contract = "sorted";
  d->arms = arms;
  int devices = 0;
  if (d->struct_size >= sizeof *d &&
      cudaGetDeviceCount(&devices) == cudaSuccess)
    d->devices = devices;
  return XTK_OK;
}

xtk_status xtk_open(const xtk_open_options* options,
                    xtk_candidate** candidate) {
  *candidate = nullptr;
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || options->device >= devices) {
    open_error = found != cudaSuccess ? cudaGetErrorString(found)
                                      : "there is no CUDA device " +
                                            std::to_string(options->device);
    return XTK_NO_DEVICE;
  }
  xtk_candidate* made = nullptr;
  const xtk_status status = guarded(open_error, [&] {
    made = new xtk_candidate;
    made->device = options->device;
    check(cudaSetDevice(made->device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking),
          "cudaStreamCreate");
    return XTK_OK;
  });
  if (status == XTK_OK)
    *candidate = made;
  else
    delete made;
  return status;
}

const char* xtk_last_error(const xtk_candidate* candidate) {
  return candidate ? candidate->error.c_str() : open_error.c_str();
}

void xtk_close(xtk_candidate* candidate) {
  cudaSetDevice(candidate->device);
  delete candidate;
}

xtk_status xtk_select(xtk_candidate* c, const xtk_select_args* args) {
  return guarded(c->error, [&] {
    if (args->rows < 1 || args->k < 1) {
      c->error = "a selection has at least one row and one entry";
      return XTK_INVALID;
    }
    check(cudaSetDevice(c->device), "cudaSetDevice");
    c->select(*args);
    return XTK_OK;
  });
}

namespace {

// Runs `body(empty)` where the replay is one that is offered.
template <typename Body>
xtk_status offered_replay(xtk_candidate* c, const xtk_replay_args* args,
                          Body body) {
  return guarded(c->error, [&] {
    const bool empty = args->part && std::strcmp(args->part, "empty") == 0;
    const bool whole = !args->part || std::strcmp(args->part, "selection") == 0;
    if (args->stage != XTK_STAGE_SELECT || (!empty && !whole)) {
      c->error = "only the selection is offered, and no part of it";
      return XTK_UNSUPPORTED;
    }
    if (c->last.total == 0 || args->replays < 1) {
      c->error = "there is no selection to repeat";
      return XTK_INVALID;
    }
    check(cudaSetDevice(c->device), "cudaSetDevice");
    body(empty);
    return XTK_OK;
  });
}

}  // namespace

xtk_status xtk_prepare_replay(xtk_candidate* c, const xtk_replay_args* args) {
  return offered_replay(
      c, args, [&](bool empty) { c->make_ready(empty, args->cold != 0); });
}

xtk_status xtk_replay(xtk_candidate* c, const xtk_replay_args* args,
                      double* microseconds) {
  return offered_replay(
      c, args, [&](bool empty) { *microseconds = c->replay(*args, empty); });
}

// No arm has launches here: the buffers are those of selections.
uint64_t xtk_scratch_bytes(const xtk_candidate* c, const char* arm) {
  if (arm) return 0;
  return c->scores.bytes() + c->row_start.bytes() + c->first.bytes() +
         c->lengths.bytes() + c->page_table.bytes() + c->positions.bytes() +
         c->sorted_positions.bytes() + c->list.bytes() + c->keys.bytes() +
         c->sorted_keys.bytes() + c->temporary.bytes() + c->evicted.bytes();
}
