// SPDX-License-Identifier: Apache-2.0
//
// How fast captures are checked, as ratios measured in one run: a selection
// capture of 64 rows x 262,144 scores, k = 2048, every list right, against
// reading the file from page cache and one pass of std::nth_element over each
// row, on one thread. The two alternate, and the fastest of each counts.
//
//   of_floor_all  time of the check on all processors over that (goal: 1.5)
//   of_floor_one  the same on one thread
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/check_capture.h"
#include "harness/parallel.h"
#include "oracle/select.h"

namespace exact_topk {
namespace {

constexpr int kRows = 64, kColumns = 262144, kK = 2048;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// The capture on disk, and gone with the object.
class BenchFile {
 public:
  BenchFile()
      : path_((std::filesystem::temp_directory_path() /
               "exact-topk-capture-bench.safetensors")
                  .string()) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> scores(size_t{kRows} * kColumns);
    for (float& s : scores) s = normal(random);
    std::vector<int32_t> topk;
    for (int r = 0; r < kRows; ++r) {
      const std::vector<int32_t> list = oracle::exact_top_k(
          std::span(scores).subspan(size_t(r) * kColumns, kColumns), kK);
      topk.insert(topk.end(), list.begin(), list.end());
    }
    const std::vector<int32_t> lengths(kRows, kColumns);
    nlohmann::json header;
    std::string data;
    const auto add = [&](const char* name, const char* dtype,
                         std::vector<int> shape, const auto& elements) {
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(elements.data()),
                  elements.size() * sizeof elements[0]);
      header[name] = {{"dtype", dtype},
                      {"shape", shape},
                      {"data_offsets", {begin, data.size()}}};
    };
    add("scores", "F32", {kRows, kColumns}, scores);
    add("lengths", "I32", {kRows}, lengths);
    add("topk", "I32", {kRows, kK}, topk);
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::ofstream(path_, std::ios::binary)
            .write(reinterpret_cast<const char*>(&length), sizeof length)
        << text << data;
  }
  BenchFile(const BenchFile&) = delete;
  BenchFile& operator=(const BenchFile&) = delete;
  ~BenchFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void floor_of(const std::string& path) {
  std::vector<char> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), std::streamsize(bytes.size()));
  std::vector<float> row(kColumns);
  for (int r = 0; r < kRows; ++r) {
    // Where exactly the rows lie does not matter here.
    std::memcpy(row.data(), bytes.data() + 256 + size_t(r) * kColumns * 4,
                kColumns * sizeof(float));
    std::nth_element(row.begin(), row.begin() + (kK - 1), row.end(),
                     std::greater<>());
    benchmark::DoNotOptimize(row.data());
  }
}

void check(const std::string& path, int threads) {
  const harness::Capture capture(path);
  const harness::CaseResult result = harness::check_capture(
      capture, {oracle::Contract::kPosition, {}, 1e-4, threads},
      {0, capture.rows()});
  if (result.verdict != harness::Outcome::kPassed)
    throw std::runtime_error(result.reason);
}

void check_capture(benchmark::State& state) {
  const BenchFile file;
  const double never = std::numeric_limits<double>::infinity();
  double least = never, one = never, all = never;
  for (auto _ : state) {
    least = std::min(least, seconds_of([&] { floor_of(file.path()); }));
    one = std::min(one, seconds_of([&] { check(file.path(), 1); }));
    all = std::min(all, seconds_of([&] {
                     check(file.path(), harness::usable_processors());
                   }));
  }
  state.counters["floor_ms"] = 1e3 * least;
  state.counters["of_floor_one"] = one / least;
  state.counters["of_floor_all"] = all / least;
}
BENCHMARK(check_capture)->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace exact_topk
