// SPDX-License-Identifier: Apache-2.0
//
// How fast the oracle is, as ratios measured in one run under the same compiler
// flags: each benchmark alternates the oracle's way with the way it is compared
// to, and reports the quotient of the two fastest times as a counter. Times are
// the thread's processor time, so that neither a disturbance of the machine nor
// its other programs favour either.
//
//   of_eigen    rate of scoring, decoding included, over the rate of Eigen's
//               own f64 product of the same shape (goal: 0.60)
//   of_plain    time of the plain way over the oracle's (goal: 3 at 131,072
//               keys x 4 rows)
//   of_stable   time of std::stable_sort of the row over base_order's (goal: 5
//               at 524,288 scores)
#include <benchmark/benchmark.h>
#include <time.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "oracle/contract.h"
#include "oracle/formats.h"
#include "oracle/front.h"
#include "oracle/pages.h"
#include "oracle/scores.h"
#include "oracle/select.h"

namespace exact_topk {
namespace {

// Seconds that this thread has run.
double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// The fastest of the times that a way has taken.
class Fastest {
 public:
  template <typename Work>
  double time(Work&& work) {
    const double start = thread_seconds();
    benchmark::DoNotOptimize(work());
    const double seconds = thread_seconds() - start;
    seconds_ = std::min(seconds_, seconds);
    return seconds;
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

// Rows of one request over permuted pages.
struct ScoreJob {
  oracle::Geometry geometry = oracle::glm53();
  std::int64_t keys;                   // of each row
  std::vector<std::uint16_t> queries;  // [rows][H * 128]
  std::vector<float> weights;          // [rows][H]
  std::vector<std::int32_t> table;     // of every row
  std::vector<std::uint8_t> cache;     // plain layout
  std::vector<oracle::ScoreRow> rows;  // views of the above

  ScoreJob(std::int64_t n, int row_count) : keys(n) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    const std::size_t heads = static_cast<std::size_t>(geometry.heads);
    const std::size_t count = static_cast<std::size_t>(row_count);
    for (std::size_t i = 0; i < count * heads * 128; ++i)
      queries.push_back(oracle::f32_to_bf16(normal(random)));
    for (std::size_t i = 0; i < count * heads; ++i)
      weights.push_back(normal(random));
    table.resize(static_cast<std::size_t>(oracle::pages_of(n)));
    std::iota(table.begin(), table.end(), 0);
    std::ranges::shuffle(table, random);
    cache.resize(table.size() * oracle::kPageBytes);
    for (std::int64_t slot = 0; slot < std::ssize(table) * 64; ++slot) {
      for (int d = 0; d < oracle::kHeadDim; ++d)
        cache[oracle::key_byte(slot, d, geometry.page_layout)] =
            oracle::f32_to_e4m3(128 * normal(random), geometry.fp8);
      const float scale = std::ldexp(1.0f, -static_cast<int>(random() % 5) - 5);
      std::memcpy(&cache[oracle::scale_byte(slot)], &scale, sizeof scale);
    }
    for (std::size_t r = 0; r < count; ++r)
      rows.push_back({std::span(queries).subspan(r * heads * 128, heads * 128),
                      std::span(weights).subspan(r * heads, heads), table, n});
  }
};

// Every query of the job as a row of one matrix.
Eigen::MatrixXd query_matrix(const ScoreJob& job) {
  Eigen::MatrixXd matrix(
      static_cast<Eigen::Index>(job.queries.size()) / oracle::kHeadDim,
      oracle::kHeadDim);
  for (Eigen::Index i = 0; i < matrix.size(); ++i)
    matrix(i / oracle::kHeadDim, i % oracle::kHeadDim) =
        oracle::bf16_to_f32(job.queries[static_cast<std::size_t>(i)]);
  return matrix;
}

// Every key of the job as a column.
Eigen::MatrixXd key_matrix(const ScoreJob& job) {
  Eigen::MatrixXd matrix(oracle::kHeadDim, job.keys);
  for (std::int64_t j = 0; j < job.keys; ++j) {
    const std::int64_t slot = oracle::slot_of(job.table, j);
    for (int d = 0; d < oracle::kHeadDim; ++d)
      matrix(d, j) = oracle::e4m3_to_f32(
          job.cache[oracle::key_byte(slot, d, job.geometry.page_layout)],
          job.geometry.fp8);
  }
  return matrix;
}

// The plain way: decode all keys to f64, one product, relu, weighted sum.
std::vector<double> plain_scores(const ScoreJob& job) {
  const Eigen::MatrixXd dots = query_matrix(job) * key_matrix(job);
  std::vector<double> scores;
  for (std::size_t r = 0; r < job.rows.size(); ++r) {
    for (std::int64_t j = 0; j < job.keys; ++j) {
      double sum = 0.0;
      for (int h = 0; h < job.geometry.heads; ++h) {
        const double dot =
            dots(static_cast<Eigen::Index>(r) * job.geometry.heads + h, j);
        sum += double{job.rows[r].weights[static_cast<std::size_t>(h)]} *
               std::max(dot, 0.0);
      }
      float scale;
      std::memcpy(&scale,
                  &job.cache[oracle::scale_byte(oracle::slot_of(job.table, j))],
                  sizeof scale);
      scores.push_back(sum * scale);
    }
  }
  return scores;
}

void scoring_of_eigen(benchmark::State& state) {
  const ScoreJob job(state.range(0), static_cast<int>(state.range(1)));
  const Eigen::MatrixXd queries = query_matrix(job), keys = key_matrix(job);
  Eigen::MatrixXd dots(queries.rows(), keys.cols());
  Fastest ours, eigen;
  for (auto _ : state) {
    state.SetIterationTime(ours.time(
        [&] { return oracle::scores(job.rows, job.cache, job.geometry); }));
    eigen.time([&] {
      dots.noalias() = queries * keys;
      return dots.data();
    });
  }
  state.counters["of_eigen"] = eigen.seconds() / ours.seconds();
  state.counters["GFLOP/s"] = 2e-9 * static_cast<double>(queries.size()) *
                              static_cast<double>(job.keys) / ours.seconds();
}
BENCHMARK(scoring_of_eigen)
    ->ArgNames({"keys", "rows"})
    ->Args({8448, 1})
    ->Args({8448, 2})
    ->Args({8448, 4})
    ->Args({8448, 8})
    ->Args({131072, 4})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void scoring_of_plain(benchmark::State& state) {
  const ScoreJob job(state.range(0), static_cast<int>(state.range(1)));
  Fastest ours, plain;
  for (auto _ : state) {
    state.SetIterationTime(ours.time(
        [&] { return oracle::scores(job.rows, job.cache, job.geometry); }));
    plain.time([&] { return plain_scores(job); });
  }
  state.counters["of_plain"] = plain.seconds() / ours.seconds();
}
BENCHMARK(scoring_of_plain)
    ->ArgNames({"keys", "rows"})
    ->Args({131072, 4})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

std::vector<float> score_row(std::int64_t n) {
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> scores(static_cast<std::size_t>(n));
  for (float& score : scores) score = normal(random);
  return scores;
}

void base_order_of_stable_sort(benchmark::State& state) {
  const std::vector<float> scores = score_row(state.range(0));
  Fastest ours, sorted;
  for (auto _ : state) {
    state.SetIterationTime(
        ours.time([&] { return oracle::base_order(scores, 2048); }));
    sorted.time([&] {
      std::vector<std::int32_t> positions(scores.size());
      std::iota(positions.begin(), positions.end(), 0);
      std::ranges::stable_sort(positions, [&](std::int32_t a, std::int32_t b) {
        return oracle::radix_key(scores[static_cast<std::size_t>(a)]) >
               oracle::radix_key(scores[static_cast<std::size_t>(b)]);
      });
      return positions;
    });
  }
  state.counters["of_stable"] = sorted.seconds() / ours.seconds();
}
BENCHMARK(base_order_of_stable_sort)
    ->ArgName("n")
    ->Arg(524288)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void judge_prepare(benchmark::State& state) {
  const std::vector<float> scores = score_row(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(oracle::ListJudge(scores, 2048));
}
BENCHMARK(judge_prepare)->Arg(8448)->Arg(524288)->Unit(benchmark::kMicrosecond);

void judge_list(benchmark::State& state) {
  const std::vector<float> scores = score_row(state.range(0));
  const oracle::ListJudge judge(scores, 2048);
  for (auto _ : state)
    benchmark::DoNotOptimize(judge.judge(judge.base_positions()));
}
BENCHMARK(judge_list)->Arg(8448)->Arg(524288)->Unit(benchmark::kMicrosecond);

// wq_b of glm53.
void projection(benchmark::State& state) {
  const int outputs = 4096, inputs = 2048;
  const int rows = static_cast<int>(state.range(0));
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> matrix(std::size_t{outputs} * inputs);
  std::vector<std::uint16_t> x(static_cast<std::size_t>(rows * inputs));
  for (auto* codes : {&matrix, &x})
    for (std::uint16_t& code : *codes)
      code = oracle::f32_to_bf16(normal(random));
  for (auto _ : state)
    benchmark::DoNotOptimize(oracle::project(matrix, outputs, inputs, x, rows));
  state.counters["weights/s"] =
      benchmark::Counter(static_cast<double>(matrix.size()),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(projection)
    ->ArgName("rows")
    ->Arg(1)
    ->Arg(4)
    ->Arg(8)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace exact_topk
