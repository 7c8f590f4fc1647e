// SPDX-License-Identifier: Apache-2.0
//
// A selector in plain C++: std::partial_sort by score, descending, ties to the
// lowest position. The least that a plug-in needs; copy it and put your own
// selection into xtk_select.
//
//     c++ -std=c++17 -O2 -shared -fPIC $(pkg-config --cflags exact_topk)
//         partial_sort.cpp -o partial_sort.so
//     check_topk --candidate ./partial_sort.so --stage select
#include <exact_topk/candidate.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

struct xtk_candidate {};  // nothing is kept between calls

namespace {

// The total order of the harness: floats as unsigned integers, so that -0 ranks
// below +0 and NaN has a place.
uint32_t radix_key(float score) {
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof bits);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// The best min(n, k) positions of a row, best first.
std::vector<int32_t> best(const float* scores, int32_t n, int32_t k) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(n, k);
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    const uint32_t x = radix_key(scores[a]), y = radix_key(scores[b]);
    return x != y ? x > y : a < b;
  });
  order.erase(end, order.end());
  return order;
}

}  // namespace

uint32_t xtk_abi_version(void) { return XTK_ABI_VERSION; }

xtk_status xtk_describe(xtk_description* d) {
  static const char* const arms[] = {"partial_sort", nullptr};
  d->name = "std::partial_sort";
  d->version = "1";
  d->device = "cpu";
  d->stages = XTK_STAGE_SELECT;
  d->repeatable = 1;
  d->contract = "sorted";  // what the list promises, and is held to
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
  for (int32_t r = 0; r < args->rows; ++r) {
    int32_t* list = args->list + args->indptr[r];
    for (const int32_t p :
         best(args->scores + args->row_start[r], args->lengths[r], args->k)) {
      if (args->page_table == nullptr) {
        *list++ = p;  // entries are positions
        continue;
      }
      const int32_t* pages = args->page_table + int64_t{r} * args->table_width;
      *list++ = pages[p / 64] * 64 + p % 64;  // entries are slots
    }
  }
  return XTK_OK;
}
