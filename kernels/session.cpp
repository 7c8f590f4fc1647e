// SPDX-License-Identifier: Apache-2.0
#include "kernels/session.h"

#include <algorithm>
#include <cmath>

#include "kernels/arguments.h"
#include "kernels/geometry.h"

namespace exact_topk::kernels {
namespace {

// Checks the options and takes the device, before any of it is used.
xtk_open_options opened(const xtk_open_options* options) {
  int devices = 0;
  if (hipGetDeviceCount(&devices) != hipSuccess) devices = 0;
  check_open(options, devices);
  backend::check(hipSetDevice(options->device), "hipSetDevice");
  return *options;
}

// Makes the choices hold at once: they decide what fresh memory holds.
backend::Choices chosen(const xtk_open_options& options) {
  backend::Choices choices;
  if (options.wave_size != 0) choices.wave = options.wave_size;
  if (options.schedule != nullptr) choices.schedule = options.schedule;
  choices.seed = options.seed;
  backend::apply(choices);
  return choices;
}

Geometry translated(const xtk_geometry& g) {
  return {.hidden = g.hidden,
          .q_lora = g.q_lora,
          .heads = g.heads,
          .k = g.k,
          .rope = static_cast<Rope>(g.rope),
          .hadamard = g.hadamard == 1,
          .scale = static_cast<Scale>(g.scale),
          .fp8 = static_cast<Fp8>(g.fp8),
          .page_layout = static_cast<PageLayout>(g.page_layout),
          .layer_norm_eps = g.layer_norm_eps,
          .rms_eps = g.rms_eps,
          .weight_factor =
              static_cast<float>(1.0 / std::sqrt(double{kHeadDim} * g.heads))};
}

base::Grid grid_of(const xtk_open_options& options, int wave) {
  base::Grid grid{wave, options.blocks, nullptr};
  if (grid.blocks == 0) {
    hipDeviceProp_t properties;
    backend::check(hipGetDeviceProperties(&properties, options.device),
                   "hipGetDeviceProperties");
    grid.blocks = properties.multiProcessorCount;
  }
  backend::check(hipStreamCreate(&grid.stream), "hipStreamCreate");
  return grid;
}

Kind kind_of(int32_t kind) {
  if (kind == XTK_KIND_INDEX) return Kind::kIndex;
  return kind == XTK_KIND_DENSE ? Kind::kDense : Kind::kEmbed;
}

DeviceBuffer scratch(uint64_t bytes_of_row, const char* name) {
  return {bytes_of_row * kLargestRows, name};
}

}  // namespace

Session::Session(const xtk_open_options* options)
    : options_(opened(options)),
      choices_(chosen(options_)),
      geometry_(translated(options_.geometry)),
      tensors_(options_),
      q_down_(scratch(sizeof(float) * static_cast<uint64_t>(geometry_.q_lora),
                      "q_down")),
      slice_bins_(
          scratch(sizeof(unsigned) * base::kSlices * kBins, "slice_bins")),
      sliced_(scratch(sizeof(base::SlicedRow), "sliced")),
      candidates_(scratch(sizeof(int32_t) * kRoom, "candidates")),
      paths_(scratch(sizeof(SelectPath), "paths")),
      grid_(grid_of(options_, choices_.wave)) {
  options_.schedule = nullptr;
}

Session::~Session() { static_cast<void>(hipStreamDestroy(grid_.stream)); }

base::SelectOperands Session::select_operands(const RowTables& rows,
                                              int k) const {
  return {.rows = rows,
          .k = k,
          .scores = nullptr,
          .row_start = nullptr,
          .score_stride = 0,
          .indptr = nullptr,
          .list = nullptr,
          .slice_bins = slice_bins_.as<unsigned>(),
          .sliced = sliced_.as<base::SlicedRow>(),
          .candidates = candidates_.as<int32_t>(),
          .paths = paths_.as<SelectPath>()};
}

std::vector<Session::Part> Session::launch_parts(
    const xtk_launch_args& args) const {
  const Tensors& t = tensors_;
  const int layer = args.layer;
  const RowTables rows{args.rows, t.data<int32_t>(XTK_POSITIONS), 1,
                       t.data<int32_t>(XTK_PAGE_TABLE), options_.table_width};
  const FrontOperands front{
      .geometry = geometry_,
      .kind = kind_of(args.kind),
      .partial_count = args.partials,
      .rows = rows,
      .weights = {.embedding = t.data<uint16_t>(XTK_EMBEDDING, layer),
                  .input_gamma = t.data<float>(XTK_INPUT_GAMMA, layer),
                  .q_a = t.data<uint16_t>(XTK_Q_A, layer),
                  .q_gamma = t.data<float>(XTK_Q_GAMMA, layer),
                  .wq_b = t.data<uint16_t>(XTK_WQ_B, layer),
                  .wk = t.data<uint16_t>(XTK_WK, layer),
                  .k_gamma = t.data<float>(XTK_K_GAMMA, layer),
                  .k_beta = t.data<float>(XTK_K_BETA, layer),
                  .weights_proj = t.data<float>(XTK_WEIGHTS_PROJ, layer),
                  .rope_cos = t.data<float>(XTK_ROPE_COS),
                  .rope_sin = t.data<float>(XTK_ROPE_SIN)},
      .residual = t.data<float>(XTK_RESIDUAL),
      .partials = t.data<float>(XTK_PARTIALS),
      .tokens = t.data<int32_t>(XTK_TOKENS),
      .slots = t.data<int32_t>(XTK_SLOTS),
      .x = t.data<uint16_t>(XTK_X),
      .q_down = q_down_.as<float>(),
      .q_lora = t.data<uint16_t>(XTK_Q_LORA),
      .mailbox = t.data<float>(XTK_MAILBOX),
      .raw_key = t.data<float>(XTK_RAW_KEY),
      .w = t.data<float>(XTK_W),
      .index_query = t.data<uint16_t>(XTK_INDEX_QUERY),
      .cache = t.data<uint8_t>(XTK_CACHE, layer)};
  const ScoreOperands score{.geometry = geometry_,
                            .rows = rows,
                            .query = front.index_query,
                            .weights = front.w,
                            .cache = front.cache,
                            .scores = t.data<float>(XTK_SCORES),
                            .score_stride = options_.score_stride};
  base::SelectOperands selection = select_operands(rows, geometry_.k);
  selection.scores = score.scores;
  selection.score_stride = score.score_stride;
  selection.indptr = t.data<int32_t>(XTK_INDPTR);
  selection.list = t.data<int32_t>(XTK_LIST);
  return {{"front", [=, this] { return base::launch_front(front, grid_); }},
          {"key-and-query",
           [=, this] { return base::launch_keys_and_queries(front, grid_); }},
          {"scoring", [=, this] { return base::launch_scores(score, grid_); }},
          {"selection", [=, this] {
             return base::launch_selection(selection, options_.max_keys, grid_);
           }}};
}

void Session::run(xtk_stage stage, std::vector<Part> parts) {
  backend::apply(choices_);
  const std::vector<Part>& kept = last_[stage] = std::move(parts);
  for (const Part& part : kept) backend::check(part.start(), part.name);
}

void Session::launch(const xtk_launch_args* args) {
  check_launch(args, options_);
  witnessed_ = {args->rows, tensors_.data<int32_t>(XTK_POSITIONS), 1, nullptr,
                0};
  run(XTK_STAGE_LAUNCH, launch_parts(*args));
}

void Session::wait() {
  backend::check(hipStreamSynchronize(grid_.stream), "hipStreamSynchronize");
}

DeviceBuffer& Session::staging(const char* name, uint64_t bytes) {
  DeviceBuffer& buffer = staging_[name];
  if (buffer.bytes() != bytes) buffer = DeviceBuffer(bytes, name);
  return buffer;
}

void Session::select(const xtk_select_args* args) {
  check_select(args);
  backend::apply(choices_);
  const xtk_select_args& a = *args;
  const uint64_t rows = static_cast<uint64_t>(a.rows);
  const auto stage = [this](const char* name, const auto* values,
                            uint64_t count) -> DeviceBuffer& {
    DeviceBuffer& buffer = staging(name, count * sizeof(*values));
    buffer.write(0, buffer.bytes(), values);
    return buffer;
  };
  const uint64_t table_entries =
      a.page_table == nullptr ? 0 : rows * static_cast<uint64_t>(a.table_width);
  const int32_t* table =
      stage("select.page_table", a.page_table, table_entries).as<int32_t>();
  const RowTables tables{
      a.rows, stage("select.lengths", a.lengths, rows).as<int32_t>(), 0,
      a.page_table == nullptr ? nullptr : table, a.table_width};
  DeviceBuffer& list =
      stage("select.list", a.list, static_cast<uint64_t>(a.list_entries));
  base::SelectOperands selection = select_operands(tables, a.k);
  selection.scores =
      stage("select.scores", a.scores, static_cast<uint64_t>(a.scores_count))
          .as<float>();
  selection.row_start =
      stage("select.row_start", a.row_start, rows).as<int64_t>();
  selection.indptr = stage("select.indptr", a.indptr, rows).as<int32_t>();
  selection.list = list.as<int32_t>();
  const int64_t largest = *std::max_element(a.lengths, a.lengths + a.rows);
  witnessed_ = tables;
  run(XTK_STAGE_SELECT, {{"selection", [=, this] {
                            return base::launch_selection(selection, largest,
                                                          grid_);
                          }}});
  wait();
  list.read(0, list.bytes(), a.list);
}

void Session::score(const xtk_score_args* args) {
  check_score(args);
  backend::apply(choices_);
  const xtk_score_args& a = *args;
  const uint64_t rows = static_cast<uint64_t>(a.rows);
  const uint64_t heads = static_cast<uint64_t>(geometry_.heads);
  const auto stage = [this](const char* name, const auto* values,
                            uint64_t count) -> DeviceBuffer& {
    DeviceBuffer& buffer = staging(name, count * sizeof(*values));
    buffer.write(0, buffer.bytes(), values);
    return buffer;
  };
  const RowTables tables{
      a.rows, stage("score.lengths", a.lengths, rows).as<int32_t>(), 0,
      stage("score.page_table", a.page_table,
            rows * static_cast<uint64_t>(a.table_width))
          .as<int32_t>(),
      a.table_width};
  DeviceBuffer& scores = stage("score.scores", a.scores,
                               rows * static_cast<uint64_t>(a.score_stride));
  const ScoreOperands operands{
      .geometry = geometry_,
      .rows = tables,
      .query =
          stage("score.index_query", a.index_query, rows * heads * kHeadDim)
              .as<uint16_t>(),
      .weights = stage("score.weights", a.weights, rows * heads).as<float>(),
      .cache = stage("score.cache", a.cache,
                     static_cast<uint64_t>(a.pages) * kPageBytes)
                   .as<uint8_t>(),
      .scores = scores.as<float>(),
      .score_stride = a.score_stride};
  run(XTK_STAGE_SCORE, {{"scoring", [=, this] {
                           return base::launch_scores(operands, grid_);
                         }}});
  wait();
  scores.read(0, scores.bytes(), a.scores);
}

xtk_witness_row Session::witness(int row) const {
  require(witnessed_.rows > 0,
          "there is no witness before a launch or a selection");
  require(row >= 0 && row < witnessed_.rows,
          "there is no row {}; the last launch or selection had {}", row,
          witnessed_.rows);
  const size_t index = static_cast<size_t>(row);
  int32_t length;
  backend::check(hipMemcpy(&length, witnessed_.lengths + index, sizeof(length),
                           hipMemcpyDeviceToHost),
                 "hipMemcpy");
  SelectPath path;
  paths_.read(index * sizeof(path), sizeof(path), &path);
  const bool launched = witnessed_.length_bias != 0;
  xtk_witness_row witness{};
  witness.struct_size = sizeof(witness);
  witness.live = launched && length < 0 ? 0 : 1;
  witness.stop_bits = path.bits;
  witness.slices = path.slices;
  witness.group = row;
  witness.group_rows = launched ? witness.live : 0;
  witness.direct_ties = path.direct_ties;
  return witness;
}

double Session::replay(const xtk_replay_args* args,
                       const double* microseconds) {
  check_replay(args, microseconds);
  const auto found = last_.find(args->stage);
  require(found != last_.end(), "there is no call of stage {} to replay",
          args->stage);
  std::vector<Part> parts;
  for (const Part& part : found->second)
    if (args->part == nullptr || std::string_view(args->part) == part.name)
      parts.push_back(part);
  require(!parts.empty(), "stage {} has no part '{}'", args->stage,
          args->part == nullptr ? "" : args->part);

  backend::apply(choices_);
  constexpr uint64_t kEvictingBytes = uint64_t{64}
                                      << 20;  // more than any L2 holds
  DeviceBuffer evicting(args->cold == 1 ? kEvictingBytes : 0, "evicting");
  hipEvent_t begin;
  hipEvent_t end;
  backend::check(hipEventCreate(&begin), "hipEventCreate");
  backend::check(hipEventCreate(&end), "hipEventCreate");
  // Cold replays are timed one by one, so that evicting is not; the others all
  // at once.
  const int timings = args->cold == 1 ? args->replays : 1;
  double milliseconds = 0;
  for (int i = 0; i < timings; ++i) {
    evicting.fill(i & 0xFF);
    backend::check(hipEventRecord(begin, grid_.stream), "hipEventRecord");
    for (int replay = 0; replay < args->replays / timings; ++replay)
      for (const Part& part : parts) backend::check(part.start(), part.name);
    backend::check(hipEventRecord(end, grid_.stream), "hipEventRecord");
    backend::check(hipEventSynchronize(end), "hipEventSynchronize");
    float elapsed = 0;
    backend::check(hipEventElapsedTime(&elapsed, begin, end),
                   "hipEventElapsedTime");
    milliseconds += static_cast<double>(elapsed);
  }
  static_cast<void>(hipEventDestroy(begin));
  static_cast<void>(hipEventDestroy(end));
  return milliseconds * 1000 / args->replays;
}

uint64_t Session::scratch_bytes() const {
  uint64_t bytes = q_down_.bytes() + slice_bins_.bytes() + sliced_.bytes() +
                   candidates_.bytes() + paths_.bytes();
  for (const auto& [name, buffer] : staging_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace exact_topk::kernels
