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
  check_open(options, backend::devices());
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

// Positions of the last keys of rows this long; -1 for a row without keys.
std::vector<int32_t> last_positions(const int32_t* lengths, int rows) {
  std::vector<int32_t> positions(lengths, lengths + rows);
  for (int32_t& position : positions) --position;
  return positions;
}

std::vector<int32_t> on_host(const int32_t* device, int count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  backend::check(
      hipMemcpy(values.data(), device, values.size() * sizeof(int32_t),
                hipMemcpyDeviceToHost),
      "hipMemcpy");
  return values;
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
      hand_off_sizes_(head::hand_off_sizes(geometry_, kLargestRows)),
      hand_off_(hand_off_sizes_.words() * sizeof(uint64_t), "hand_off"),
      run_patched_(sizeof(uint32_t) * layout::kMaxRows * layout::kMaxRuns,
                   "run_patched"),
      lds_(head::plan_lds(geometry_, kLargestRows,
                          backend::lds_bytes(options_.device))),
      grid_(grid_of(options_, choices_.wave)) {
  options_.schedule = nullptr;
  hand_off_.fill(0);  // no launch has tag 0
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

head::Operands Session::head_operands(
    const FrontOperands& front, const ScoreOperands& score,
    const base::SelectOperands& select) const {
  return {.parts = 0,
          .tag = 0,
          .front = front,
          .score = score,
          .select = {.k = select.k,
                     .scores = select.scores,
                     .row_start = select.row_start,
                     .score_stride = select.score_stride,
                     .indptr = select.indptr,
                     .list = select.list,
                     .own_candidates = select.candidates},
          .requests = nullptr,
          .most_slices = layout::kMaxSlices,
          .batch_pages = lds_.batch_pages,
          .pairs = head::hand_off(hand_off_.as<uint64_t>(), hand_off_sizes_),
          .run_patched = run_patched_.as<uint32_t>(),
          .paths = select.paths};
}

hipError_t Session::start_head(head::Operands operands, unsigned parts) {
  if (++tag_ == 0)
    ++tag_;  // 0 is what cleared words carry; a refused launch has had its tag
             // all the same
  operands.parts = parts;
  operands.tag = tag_;
  return head::launch(operands, grid_, lds_.bytes);
}

Session::Call Session::launch_call(const xtk_launch_args& args) {
  const Tensors& t = tensors_;
  const int layer = args.layer;
  const RowTables rows{args.rows, t.data<int32_t>(XTK_POSITIONS),
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
  head::Operands operands = head_operands(front, score, selection);
  operands.requests = t.data<int32_t>(XTK_REQUESTS);
  const auto in_head = [&](const char* name, unsigned parts) {
    return Part{name, [=, this] { return start_head(operands, parts); }};
  };
  const std::string_view arm = args.arm;
  if (arm == "head") {
    return {{in_head("head", head::kFrontPart | head::kKeyQueryPart |
                                 head::kScorePart | head::kSelectPart)},
            {in_head("front", head::kFrontPart),
             in_head("key-and-query", head::kKeyQueryPart),
             in_head("scoring", head::kScorePart),
             in_head("selection", head::kSelectPart)}};
  }
  // Not a conditional expression: nvcc 13 crashes on one with these closures.
  Part scoring{"scoring",
               [=, this] { return base::launch_scores(score, grid_); }};
  if (arm == "base+grouped") scoring = in_head("scoring", head::kScorePart);
  Part selecting{"selection", [=, this] {
                   return base::launch_selection(selection, options_.max_keys,
                                                 grid_);
                 }};
  if (arm == "base+slices") selecting = in_head("selection", head::kSelectPart);
  const std::vector<Part> parts{
      {"front", [=, this] { return base::launch_front(front, grid_); }},
      {"key-and-query",
       [=, this] { return base::launch_keys_and_queries(front, grid_); }},
      scoring,
      selecting};
  return {parts, parts};
}

void Session::run(xtk_stage stage, Call call) {
  backend::apply(choices_);
  prepared_.reset();
  std::deque<Call>& calls = last_[stage];
  // What other stages than a launch work on lies in staging, which their next
  // call takes over.
  if (stage != XTK_STAGE_LAUNCH) calls.clear();
  if (calls.size() == kMostCalls) calls.pop_front();
  calls.push_back(std::move(call));
  for (const Part& part : calls.back().whole)
    backend::check(part.start(), part.name);
}

void Session::launch(const xtk_launch_args* args) {
  check_launch(args, options_);
  const std::string_view arm = args->arm;
  const RowTables tables{args->rows, tensors_.data<int32_t>(XTK_POSITIONS),
                         tensors_.data<int32_t>(XTK_PAGE_TABLE),
                         options_.table_width};
  witnessed_ = {tables, tensors_.data<int32_t>(XTK_REQUESTS),
                tensors_.data<int32_t>(XTK_SLOTS),
                arm == "head" || arm == "base+grouped"};
  run(XTK_STAGE_LAUNCH, launch_call(*args));
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
  const std::vector<int32_t> positions = last_positions(a.lengths, a.rows);
  const RowTables tables{
      a.rows, stage("select.positions", positions.data(), rows).as<int32_t>(),
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
  witnessed_ = {tables, nullptr, nullptr, false};
  const std::string_view arm = a.arm;
  const bool slices = arm == "head" || arm == "base+slices";
  FrontOperands front{};
  front.rows = tables;
  const head::Operands operands = head_operands(front, {}, selection);
  const std::vector<Part> parts{
      {"selection", [=, this] {
         return slices ? start_head(operands, head::kSelectPart)
                       : base::launch_selection(selection, largest, grid_);
       }}};
  run(XTK_STAGE_SELECT, {parts, parts});
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
  const std::vector<int32_t> positions = last_positions(a.lengths, a.rows);
  const RowTables tables{
      a.rows, stage("score.positions", positions.data(), rows).as<int32_t>(),
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
  // Rows without a launch have no request and no slot; those whose tables agree
  // score together.
  std::vector<int32_t> requests(rows, -1);
  std::vector<int32_t> slots(rows, -1);
  for (uint64_t r = 0; r < rows; ++r) {
    if (positions[r] < 0) continue;
    requests[r] = 0;
    slots[r] = slot_of(a.page_table + r * static_cast<uint64_t>(a.table_width),
                       positions[r]);
  }
  const std::string_view arm = a.arm;
  const bool grouped = arm == "head" || arm == "base+grouped";
  FrontOperands front{};
  front.rows = tables;
  front.slots = stage("score.slots", slots.data(), rows).as<int32_t>();
  head::Operands in_head =
      head_operands(front, operands, select_operands(tables, geometry_.k));
  in_head.requests =
      stage("score.requests", requests.data(), rows).as<int32_t>();
  const std::vector<Part> parts{
      {"scoring", [=, this] {
         return grouped ? start_head(in_head, head::kScorePart)
                        : base::launch_scores(operands, grid_);
       }}};
  run(XTK_STAGE_SCORE, {parts, parts});
  wait();
  scores.read(0, scores.bytes(), a.scores);
}

xtk_witness_row Session::witness(int row) const {
  const Witnessed& w = witnessed_;
  require(w.tables.rows > 0,
          "there is no witness before a launch or a selection");
  require(row >= 0 && row < w.tables.rows,
          "there is no row {}; the last launch or selection had {}", row,
          w.tables.rows);
  const size_t index = static_cast<size_t>(row);
  SelectPath path;
  paths_.read(index * sizeof(path), sizeof(path), &path);
  const std::vector<int32_t> positions =
      on_host(w.tables.positions, w.tables.rows);
  xtk_witness_row witness{};
  witness.struct_size = sizeof(witness);
  witness.live = w.requests != nullptr && positions[index] < 0 ? 0 : 1;
  if (witness.live == 0) return witness;
  witness.stop_bits = path.bits;
  witness.slices = path.slices;
  witness.direct_ties = path.direct_ties;
  witness.staged = path.staged;
  witness.chunks = path.chunks;
  witness.group = row;
  witness.group_rows = w.requests != nullptr ? 1 : 0;
  if (!w.grouped) return witness;

  const std::vector<int32_t> requests = on_host(w.requests, w.tables.rows);
  const std::vector<int32_t> slots = on_host(w.slots, w.tables.rows);
  const std::vector<int32_t> table =
      on_host(w.tables.page_table, w.tables.rows * w.tables.table_width);
  const layout::RowsView view{w.tables.rows,    requests.data(),
                              positions.data(), slots.data(),
                              table.data(),     w.tables.table_width};
  const layout::Group group = layout::group_of(layout::row_groups(view), row);
  const int64_t keys = view.keys(group.first + group.rows - 1);
  witness.group = group.first;
  witness.group_rows = group.rows;
  witness.runs = layout::score_runs(keys, grid_.blocks);
  std::vector<uint32_t> patched(static_cast<size_t>(witness.runs));
  run_patched_.read(
      sizeof(uint32_t) * static_cast<size_t>(group.first) * layout::kMaxRuns,
      sizeof(uint32_t) * patched.size(), patched.data());
  for (int run = 0; run < witness.runs; ++run) {
    const int64_t pages = layout::run_pages(keys, witness.runs, run).size();
    witness.batches = std::max(
        witness.batches,
        static_cast<int32_t>(layout::ceil_div(pages, lds_.batch_pages)));
    witness.patched_keys +=
        static_cast<int32_t>(patched[static_cast<size_t>(run)]);
  }
  return witness;
}

bool Session::Prepared::is(const xtk_replay_args& args) const {
  return !spent && stage == args.stage &&
         part == (args.part == nullptr ? "" : args.part) &&
         replays == args.replays && cold == (args.cold == 1) &&
         calls == args.calls;
}

std::vector<Session::Part> Session::replayed(const xtk_replay_args& args) {
  const std::deque<Call>& calls = last_[args.stage];
  require(!calls.empty(), "there is no call of stage {} to replay", args.stage);
  require(static_cast<size_t>(args.calls) <= calls.size(),
          "there are {} calls of stage {} to replay, not {}", calls.size(),
          args.stage, args.calls);
  std::vector<Part> parts;
  for (auto call = calls.end() - args.calls; call != calls.end(); ++call) {
    if (args.part == nullptr) {
      parts.insert(parts.end(), call->whole.begin(), call->whole.end());
    } else if (std::string_view(args.part) == "empty") {
      parts.push_back({"empty", [this] { return head::launch_empty(grid_); }});
    } else {
      for (const Part& part : call->pieces)
        if (std::string_view(args.part) == part.name) parts.push_back(part);
    }
  }
  if (parts.empty())
    throw Failure(XTK_UNSUPPORTED, fmt::format("stage {} has no part '{}'",
                                               args.stage, args.part));
  return parts;
}

void Session::prepare_replay(const xtk_replay_args* asked) {
  const xtk_replay_args args = check_replay(asked);
  const auto start = [parts = replayed(args)] {
    for (const Part& part : parts) backend::check(part.start(), part.name);
  };
  backend::apply(choices_);
  prepared_.reset();  // before another takes device memory
  prepared_ = Prepared{args.stage,
                       args.part == nullptr ? "" : args.part,
                       args.replays,
                       args.cold == 1,
                       args.calls,
                       Replay({start, grid_.stream, args.replays,
                               args.cold == 1, options_.device}),
                       false};
}

double Session::replay(const xtk_replay_args* asked,
                       const double* microseconds) {
  require(microseconds != nullptr, "microseconds is a null pointer");
  const xtk_replay_args args = check_replay(asked);
  backend::apply(choices_);
  if (!prepared_ || !prepared_->is(args)) prepare_replay(asked);
  prepared_->spent = true;
  return prepared_->replay.microseconds();
}

uint64_t Session::scratch_bytes(std::string_view arm) const {
  const uint64_t both = candidates_.bytes() + paths_.bytes();
  const uint64_t head = hand_off_.bytes() + run_patched_.bytes();
  const uint64_t front = q_down_.bytes();
  const uint64_t slices = slice_bins_.bytes() + sliced_.bytes();
  if (arm == "base") return both + front + slices;
  if (arm == "head") return both + head;
  if (arm == "base+grouped") return both + front + head + slices;
  if (arm == "base+slices") return both + front + head;
  return 0;
}

uint64_t Session::scratch_bytes() const {
  uint64_t bytes = scratch_bytes("base+grouped");  // it needs all
  for (const auto& [name, buffer] : staging_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace exact_topk::kernels
