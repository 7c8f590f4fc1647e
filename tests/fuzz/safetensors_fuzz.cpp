// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a capture: either one sentence, or a capture whose every row can
// be read, judged and scored. Run under ASan and UBSan.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/capture.h"
#include "oracle/scores.h"

namespace {

using exact_topk::harness::Capture;

// Rows that are looked at; more would only be slower.
constexpr int64_t kRows = 4;

void read_rows(const Capture& capture) {
  for (int64_t r = 0; r < std::min(capture.rows(), kRows); ++r) {
    const std::vector<float> scores = capture.scores(r);
    const std::vector<int32_t> positions = capture.positions(r);
    exact_topk::oracle::judge_list(positions, scores, capture.k());
    if (!capture.has_query()) continue;
    const std::vector<double> query = capture.query(r);
    const std::vector<float> weights = capture.head_weights(r);
    const std::vector<int32_t> pages = capture.pages(r);
    const exact_topk::oracle::WideScoreRow row{query, weights, pages,
                                               capture.keys(r)};
    exact_topk::oracle::scores(std::span(&row, 1), capture.cache(),
                               capture.geometry());
    for (int64_t p = 0; p < capture.keys(r); p += 63) capture.key_scale(r, p);
  }
}

// A file of one descriptor, in memory.
const std::string& path() {
  static const int descriptor = memfd_create("capture", 0);
  static const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  return name;
}

void write_file(const uint8_t* data, size_t size) {
  const int descriptor = std::stoi(path().substr(path().rfind('/') + 1));
  if (ftruncate(descriptor, 0) != 0 ||
      pwrite(descriptor, data, size, 0) != ssize_t(size))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  write_file(data, size);
  try {
    read_rows(Capture(path()));
  } catch (const std::runtime_error& fault) {
    // One sentence on one line that names the file.
    const std::string_view sentence = fault.what();
    if (sentence.find('\n') != std::string_view::npos ||
        sentence.find(path()) == std::string_view::npos)
      std::abort();
  }
  return 0;
}
