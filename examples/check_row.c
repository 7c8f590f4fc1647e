/* SPDX-License-Identifier: Apache-2.0
 *
 * A row's list, checked against its scores by libexact_topk:
 *   cc check_row.c $(pkg-config --cflags --libs libexact_topk) -o check_row */
#include <exact_topk/exact_topk.h>
#include <stdio.h>

int main(void) {
  const float scores[] = {0.5f, 3, 2, 2, 1}; /* what your kernel scored */
  const int32_t topk[] = {1, 3, -1};         /* and listed, for k = 2 */
  exact_topk_scores row = {.struct_size = sizeof row,
                           .dtype = EXACT_TOPK_F32,
                           .data = scores,
                           .n = 5};
  exact_topk_list list = {.struct_size = sizeof list,
                          .dtype = EXACT_TOPK_I32,
                          .entries = topk,
                          .count = 3,
                          .k = 2};
  exact_topk_result result = {.struct_size = sizeof result};
  char sentence[EXACT_TOPK_SENTENCE_BYTES];

  for (list.contract = EXACT_TOPK_VALUES; list.contract <= EXACT_TOPK_SET;
       ++list.contract) {
    if (exact_topk_check_list(&row, &list, &result, sentence,
                              sizeof sentence) != EXACT_TOPK_OK) {
      fprintf(stderr, "check_row: %s\n", sentence);
      return 2;
    }
    printf("contract %d: %s%s\n", list.contract,
           result.held ? "held" : "broken: ", sentence);
  }
  return 0;
}
