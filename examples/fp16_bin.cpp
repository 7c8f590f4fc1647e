// SPDX-License-Identifier: Apache-2.0
//
// A selector that is wrong, in the way that published ones were: one histogram
// of fp16 scores, and a buffer of 4,096 entries for the keys that share the
// threshold's bin. Keys that find the buffer full are dropped without a word,
// so that it is right until some row has a fuller bin. Random scores do not.
//
//     c++ -std=c++17 -O2 -shared -fPIC $(pkg-config --cflags exact_topk)
//         fp16_bin.cpp -o fp16_bin.so
//     check_topk --candidate ./fp16_bin.so --stage select
//         --rows-from coarse-bin-4096,coarse-bin-4097
//
// Keys come out in arrival order, bins above the threshold's first; ties go to
// the lowest position, so that nothing but the buffer is wrong.
#include <exact_topk/candidate.h>

#include <algorithm>
#include <cstring>
#include <vector>

struct xtk_candidate {};  // nothing is kept between calls

namespace {

constexpr size_t kBuffer = 4096;  // the fault
constexpr int kBins = 256;        // the top 8 bits of an fp16

uint32_t radix_key(float score) {
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof bits);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// Sign, exponent and the first two bits of the mantissa as an fp16 has them;
// what fp16 cannot hold goes to the outermost bins.
int bin_of(float score) {
  const uint32_t key = radix_key(score);
  const bool negative = key >> 31 == 0;
  const uint32_t magnitude = negative ? ~key : key & 0x7FFFFFFFu;
  const int rebiased = static_cast<int>(magnitude >> 21) - (112 << 2);
  const int clamped = std::clamp(rebiased, 0, kBins / 2 - 1);
  return negative ? kBins / 2 - 1 - clamped : kBins / 2 + clamped;
}

// The list of a row of n > k scores.
std::vector<int32_t> select(const float* scores, int32_t n, int32_t k) {
  std::vector<int32_t> count(kBins, 0);
  for (int32_t p = 0; p < n; ++p) ++count[bin_of(scores[p])];
  int threshold = kBins - 1;
  int32_t above = 0;  // keys in bins above the threshold's
  while (above + count[threshold] < k) above += count[threshold--];

  std::vector<int32_t> list, buffer;
  for (int32_t p = 0; p < n; ++p) {
    const int bin = bin_of(scores[p]);
    if (bin > threshold)
      list.push_back(p);
    else if (bin == threshold && buffer.size() < kBuffer)
      buffer.push_back(p);
  }
  const auto better = [&](int32_t a, int32_t b) {
    const uint32_t x = radix_key(scores[a]), y = radix_key(scores[b]);
    return x != y ? x > y : a < b;
  };
  const size_t wanted = std::min<size_t>(k - above, buffer.size());
  std::nth_element(buffer.begin(), buffer.begin() + wanted, buffer.end(),
                   better);
  buffer.resize(wanted);
  std::sort(buffer.begin(), buffer.end());
  list.insert(list.end(), buffer.begin(), buffer.end());
  return list;
}

}  // namespace

uint32_t xtk_abi_version(void) { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* d) {
  static const char* const arms[] = {"fp16 bin", nullptr};
  d->name = "one fp16 bin";
  d->version = "1";
  d->device = "cpu";
  d->stages = XTK_STAGE_SELECT;
  d->repeatable = 1;
  d->contract = "set";
  d->arms = arms;
  return XTK_OK;
}

xtk_status xtk_open(const xtk_open_options*, xtk_candidate** candidate) {
  *candidate = new xtk_candidate;
  return XTK_OK;
}

const char* xtk_last_error(const xtk_candidate*) { return ""; }

void xtk_close(xtk_candidate* candidate) { delete candidate; }

xtk_status xtk_select(xtk_candidate*, const xtk_select_args* args) {
  if (args->page_table != nullptr) return XTK_UNSUPPORTED;
  for (int32_t r = 0; r < args->rows; ++r) {
    const int32_t n = args->lengths[r];
    int32_t* list = args->list + args->indptr[r];
    if (n > args->k) {
      const std::vector<int32_t> found =
          select(args->scores + args->row_start[r], n, args->k);
      std::copy(found.begin(), found.end(), list);
    } else {
      for (int32_t p = 0; p < n; ++p) list[p] = p;
    }
  }
  return XTK_OK;
}
