/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/api/from_c.h"

#include <exact_topk/exact_topk.h>
#include <string.h>

#define MUST(condition) \
  do {                  \
    if (!(condition)) { \
      return __LINE__;  \
    }                   \
  } while (0)

static int lists(void) {
  const float scores[] = {3, 1, 2};
  const int32_t right[] = {0, 2, -1}, wrong[] = {0, 1, -1};
  const exact_topk_scores row = {.struct_size = sizeof row,
                                 .dtype = EXACT_TOPK_F32,
                                 .data = scores,
                                 .n = 3};
  exact_topk_list list = {.struct_size = sizeof list,
                          .dtype = EXACT_TOPK_I32,
                          .entries = right,
                          .count = 3,
                          .k = 2,
                          .contract = EXACT_TOPK_SORTED};
  exact_topk_result result = {.struct_size = sizeof result};
  char sentence[EXACT_TOPK_SENTENCE_BYTES];
  MUST(exact_topk_check_list(&row, &list, &result, sentence, sizeof sentence) ==
       EXACT_TOPK_OK);
  MUST(result.held == 1 && sentence[0] == '\0');
  list.entries = wrong;
  MUST(exact_topk_check_list(&row, &list, &result, sentence, sizeof sentence) ==
       EXACT_TOPK_OK);
  MUST(result.held == 0 && result.missed == 1 && result.first_index == 1);
  MUST(strstr(sentence, "1 keys of the exact top k are missed") != NULL);
  list.k = 0;
  MUST(exact_topk_check_list(&row, &list, &result, NULL, 0) ==
       EXACT_TOPK_BAD_ARGUMENT);
  return 0;
}

/* One page of keys that are 0 but for dim 0, which is 1: a score is a scale. */
static int scores(void) {
  unsigned char page[EXACT_TOPK_PAGE_BYTES] = {0};
  const float scales[] = {2, 4}, weight = 1;
  float query[EXACT_TOPK_HEAD_DIM] = {1}, own[] = {2, 4};
  double reference[2];
  int32_t list[1];
  exact_topk_source source = {.struct_size = sizeof source,
                              .query_dtype = EXACT_TOPK_F32,
                              .query = query,
                              .weights = &weight,
                              .cache = page,
                              .cache_pages = 1,
                              .keys = 2,
                              .heads = 1};
  const exact_topk_scores row = {
      .struct_size = sizeof row, .dtype = EXACT_TOPK_F32, .data = own, .n = 2};
  exact_topk_result result = {.struct_size = sizeof result};
  page[0] = page[EXACT_TOPK_HEAD_DIM] = 0x38;
  memcpy(page + EXACT_TOPK_PAGE_TOKENS * EXACT_TOPK_HEAD_DIM, scales,
         sizeof scales);
  MUST(exact_topk_scores_f64(&source, reference, NULL, 0) == EXACT_TOPK_OK);
  MUST(reference[0] == 2 && reference[1] == 4);
  MUST(exact_topk_list_f64(&source, 1, list, NULL, 0) == EXACT_TOPK_OK);
  MUST(list[0] == 1);
  MUST(exact_topk_check_scores(&row, &source, 1e-4, &result, NULL, 0) ==
       EXACT_TOPK_OK);
  MUST(result.held == 1);
  own[1] = 5;
  MUST(exact_topk_check_scores(&row, &source, 1e-4, &result, NULL, 0) ==
       EXACT_TOPK_OK);
  MUST(result.held == 0 && result.max_error == 0.25);
  return 0;
}

int from_c_first_wrong_line(void) {
  const int line = lists();
  return line != 0 ? line : scores();
}
