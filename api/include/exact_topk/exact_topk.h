/* SPDX-License-Identifier: Apache-2.0
 *
 * exact_topk.h - the checks of exact-topk inside somebody's own test or server.
 *
 * One row at a time, in host memory:
 *   exact_topk_check_list      a list against the row's own scores, at a level
 *                              of the contract ladder
 *   exact_topk_check_scores    scores against f64 ones from cache, query and
 *                              weights
 *   exact_topk_check_list_f64  a list against those f64 scores, for a kernel
 *                              that keeps none
 *   exact_topk_scores_f64      those f64 scores
 *   exact_topk_list_f64        the list that they give
 *   exact_topk_digest          the SHA-256 by which digest trees know a tensor
 *
 * How it works. The caller fills structures that describe its memory; nothing
 * is copied out of them for longer than a call. What a check finds is a result,
 * never a status: a wrong list is EXACT_TOPK_OK with held 0. Calls keep nothing
 * and share nothing, so any number of threads may call at once.
 *
 * Sentences. Every call takes a buffer for one sentence without a newline, cut
 * to its size and always terminated; NULL with 0 where none is wanted. It says
 * what is wrong with the arguments where the status is not EXACT_TOPK_OK, what
 * is wrong with the row where a check did not hold, and is empty otherwise.
 * After any status but EXACT_TOPK_OK outputs are as they were. No exception
 * leaves the library.
 *
 * Versions. Structures begin with struct_size, the caller's sizeof. A later
 * library adds fields at the end and goes on taking this header's sizes; a size
 * that it does not know is a bad argument. Zero every structure before filling
 * it: fields left at zero are absent or have their default.
 *
 * What it does not do: no GPU memory, no files, no threads of its own. It needs
 * a processor with AVX2.
 */
#ifndef EXACT_TOPK_EXACT_TOPK_H
#define EXACT_TOPK_EXACT_TOPK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXACT_TOPK_EXPORT __attribute__((visibility("default")))

typedef enum exact_topk_status {
  EXACT_TOPK_OK = 0,           /* done; a result says what was found */
  EXACT_TOPK_BAD_ARGUMENT = 1, /* the sentence names the argument */
  EXACT_TOPK_NO_MEMORY = 2,    /* memory ran out */
  EXACT_TOPK_FAILED = 3        /* anything else; the sentence says what */
} exact_topk_status;

/* Elements, little-endian. A tensor may lie at any address; typed pointers
 * below are aligned as their type is. */
typedef enum exact_topk_dtype {
  EXACT_TOPK_F32 = 1,
  EXACT_TOPK_F16 = 2,
  EXACT_TOPK_BF16 = 3,
  EXACT_TOPK_F8_E4M3 = 4, /* e4m3fn */
  EXACT_TOPK_I32 = 5,
  EXACT_TOPK_I64 = 6,
  EXACT_TOPK_F64 = 7,
  EXACT_TOPK_U8 = 8
} exact_topk_dtype;

/* What a list of min(n, k) entries promises. VALID < VALUES < SET; each of the
 * orders adds to SET and none includes another. */
typedef enum exact_topk_contract {
  EXACT_TOPK_VALID = 1,    /* distinct keys of the row, -1 after them */
  EXACT_TOPK_VALUES = 2,   /* their scores are the k largest */
  EXACT_TOPK_SET = 3,      /* and ties go to the lowest position */
  EXACT_TOPK_POSITION = 4, /* ascending positions */
  EXACT_TOPK_SORTED = 5,   /* descending scores, equal ones by position */
  EXACT_TOPK_BASE = 6      /* the base order of exact-topk's own kernels */
} exact_topk_contract;

enum {
  EXACT_TOPK_PAGE_TOKENS = 64,    /* keys of a page */
  EXACT_TOPK_PAGE_BYTES = 8448,   /* 64 * 128 key bytes, then 64 f32 scales */
  EXACT_TOPK_HEAD_DIM = 128,      /* elements of a key and of a head's query */
  EXACT_TOPK_DIGEST_BYTES = 65,   /* 64 hex digits and their end */
  EXACT_TOPK_SENTENCE_BYTES = 512 /* holds every sentence */
};

/* One row's scores, as the kernel left them. */
typedef struct exact_topk_scores {
  uint32_t struct_size;
  int32_t dtype;    /* EXACT_TOPK_F32, F16 or BF16 */
  const void* data; /* [n] */
  int64_t n;        /* keys of the row, 0 to 2^31 - 1 */
} exact_topk_scores;

/* One row's list, as the kernel left it. */
typedef struct exact_topk_list {
  uint32_t struct_size;
  int32_t dtype;       /* EXACT_TOPK_I32 or I64 */
  const void* entries; /* [count] */
  int64_t count;       /* the min(n, k) entries and the padding after them */
  int32_t k;           /* entries of a full list, at least 1 */
  int32_t contract;    /* exact_topk_contract */
  int32_t nan_last;    /* 1: every NaN is one value below -inf; 0: +NaN ranks
                          above +inf and -NaN lowest, by their bits */
  int32_t zeros_equal; /* 1: -0.0 and +0.0 are one value; 0: -0.0 is lower.
                          EXACT_TOPK_BASE knows neither rule */
  const int32_t* page_table; /* [pages] of the row: entries are slots, page * 64
                                + position % 64; NULL: they are positions */
  int64_t
      pages; /* at least n / 64 rounded up; entries past those are not read */
} exact_topk_list;

/* What one row's scores were computed from:
 *   score[j] = scale_j * sum_h weights[h] * relu(query_h . key_j) */
typedef struct exact_topk_source {
  uint32_t struct_size;
  int32_t query_dtype; /* EXACT_TOPK_BF16, F32, F16 or F8_E4M3 */
  const void* query; /* [heads][128], as multiplied: after rope and Hadamard */
  const float* q_scale; /* [heads] with F8_E4M3, q = q8 * q_scale; else NULL */
  const float* weights; /* [heads], without q_scale in them */
  const void* cache;    /* [cache_pages][8448] */
  int64_t cache_pages;  /* pages of the cache */
  const int32_t*
      page_table;      /* [pages] of the row; NULL: position p is at slot p */
  int64_t pages;       /* at least keys / 64 rounded up */
  int64_t keys;        /* n: positions 0 to n - 1 are scored */
  int32_t heads;       /* 1 to 65536 */
  int32_t cache_fp8;   /* 0: e4m3fn, 1: e4m3fnuz */
  int32_t page_layout; /* 0: plain, 1: preshuffled by 16 tokens */
  int32_t reserved;    /* 0 */
} exact_topk_source;

/* What a check found. Fields that a check does not speak of are 0, first_index
 * and first_position -1, cosine 1. */
typedef struct exact_topk_result {
  uint32_t struct_size; /* set by the caller */
  int32_t held;         /* 1: the contract, or the bound, held */
  uint32_t levels;      /* lists: bit 1u << contract of every level that held */
  int32_t bits;         /* lists: where the base order stopped: 12, 24, 32; 0
                           where n <= k */
  int64_t faults; /* scores: those that fail. Lists: entries that are no key,
                     repeat one, or are not -1 where they must be */
  int64_t missed; /* keys of the exact top k that the list lacks */
  int64_t missed_ties;  /* those of them that equal the k-th */
  int64_t extra;        /* keys listed that are not of the exact top k */
  int64_t beyond;       /* check_list_f64: missed and extra keys that no error
                           of the scores within the bound explains */
  int64_t order_errors; /* entries that differ from the base order */
  int64_t first_index; /* lists: the first entry that breaks the contract, count
                          where the list is too short; scores: the position */
  int64_t first_position; /* the position of the key at fault */
  double max_error;       /* scores: largest |score - reference| over the row's
                             largest |reference| */
  double relative_error;  /* Euclidean, |x - reference| / |reference|: of all
                             scores, or of the listed keys' scores against the
                             top k's, both descending */
  double cosine;          /* of the angle between the same two vectors */
} exact_topk_result;

/* A tensor to digest: F32, I32, F64, U8, F8_E4M3 (as its bytes) or BF16. */
typedef struct exact_topk_tensor {
  uint32_t struct_size;
  int32_t dtype;
  const void* data;     /* row-major, without gaps */
  const int64_t* shape; /* [dimensions] */
  int64_t dimensions;   /* 0: a scalar */
} exact_topk_tensor;

/* The version of the library, as "0.1.0". */
EXACT_TOPK_EXPORT const char* exact_topk_version(void);

/* The list against the row's own scores. */
EXACT_TOPK_EXPORT exact_topk_status exact_topk_check_list(
    const exact_topk_scores* scores, const exact_topk_list* list,
    exact_topk_result* result, char* sentence, size_t sentence_bytes);

/* The scores against f64. Held where no score is further from its reference
 * than bound times the row's largest |reference| (F16 and BF16: and half an ulp
 * of the score), none is a NaN or an infinity, and those whose terms are all
 * zero are 0. `bound` is in [0, 0.5); exact-topk's own is 1e-4. */
EXACT_TOPK_EXPORT exact_topk_status exact_topk_check_scores(
    const exact_topk_scores* scores, const exact_topk_source* source,
    double bound, exact_topk_result* result, char* sentence,
    size_t sentence_bytes);

/* The list against f64 scores alone. With T the k-th largest of them and b =
 * bound times the row's largest |reference|, a kernel whose scores are off by b
 * or less lists no key below T - 2b and misses none above T + 2b. `contract` is
 * VALID, VALUES, SET (these two ask for the same here) or POSITION: the others
 * need the kernel's own scores. nan_last and zeros_equal must be 0. */
EXACT_TOPK_EXPORT exact_topk_status exact_topk_check_list_f64(
    const exact_topk_source* source, const exact_topk_list* list, double bound,
    exact_topk_result* result, char* sentence, size_t sentence_bytes);

/* The f64 scores, keys of them. */
EXACT_TOPK_EXPORT exact_topk_status
exact_topk_scores_f64(const exact_topk_source* source, double* scores,
                      char* sentence, size_t sentence_bytes);

/* The positions of the k best of them, min(keys, k), in base order; scores that
 * round to one f32 are ties. */
EXACT_TOPK_EXPORT exact_topk_status
exact_topk_list_f64(const exact_topk_source* source, int32_t k,
                    int32_t* positions, char* sentence, size_t sentence_bytes);

/* SHA-256 of the tensor's .npy bytes, as 64 hex digits. */
EXACT_TOPK_EXPORT exact_topk_status exact_topk_digest(
    const exact_topk_tensor* tensor, char digest[EXACT_TOPK_DIGEST_BYTES],
    char* sentence, size_t sentence_bytes);

#ifdef __cplusplus
}
#endif

#endif
