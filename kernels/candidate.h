/* SPDX-License-Identifier: Apache-2.0
 *
 * candidate.h - the C ABI through which exact-topk drives any kernel, its own
 * included.
 *
 * A candidate is a shared library, opened with dlopen, that exports the
 * functions declared at the end of this page with C linkage. The harness asks
 * it what it offers (xtk_describe), opens it on a device for a geometry and the
 * largest shapes to come (xtk_open), fills its tensors (xtk_write), launches
 * (xtk_launch), waits (xtk_wait) and reads back everything that the launch
 * published and everything that it must not have touched (xtk_read). A library
 * that only selects or only scores exports xtk_select or xtk_score instead of
 * the tensor and launch calls; the table below says what each stage needs.
 *
 *     every library            xtk_abi_version xtk_describe xtk_open
 * xtk_last_error xtk_close XTK_STAGE_LAUNCH         xtk_tensor_bytes xtk_write
 * xtk_read xtk_launch xtk_wait XTK_STAGE_SCORE          xtk_score
 *     XTK_STAGE_SELECT         xtk_select
 *     optional                 xtk_view xtk_witness xtk_replay
 * xtk_prepare_replay xtk_scratch_bytes
 *
 * Memory. Every pointer that crosses the ABI is host memory, valid only during
 * the call unless said otherwise. Where the candidate's memory can be read by
 * the host in place, xtk_view offers it for speed.
 *
 * Errors. Every call returns an xtk_status; after anything but XTK_OK,
 * xtk_last_error gives one sentence, without a newline. No exception crosses
 * the ABI.
 *
 * Versions. xtk_abi_version must return XTK_ABI_VERSION. Structures that the
 * harness passes begin with struct_size, the caller's sizeof, so that fields
 * can be added at the end within one version.
 *
 * Threads. The harness calls one open candidate from one thread at a time.
 * xtk_launch may return before the work is done; xtk_wait returns when every
 * store of every earlier launch is visible to xtk_read.
 */
#ifndef EXACT_TOPK_CANDIDATE_H
#define EXACT_TOPK_CANDIDATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XTK_ABI_VERSION 1u
#define XTK_EXPORT __attribute__((visibility("default")))

typedef enum xtk_status {
  XTK_OK = 0,          /* done */
  XTK_INVALID = 1,     /* an argument is out of range; nothing was changed */
  XTK_UNSUPPORTED = 2, /* this candidate does not offer that */
  XTK_NO_DEVICE =
      3, /* no device of the kind needed is here: the run exits with 77 */
  XTK_FAILED = 4 /* the launch or the device failed: deadlock, divergent
                    barrier, write outside a buffer, ... */
} xtk_status;

/* How hidden states reach the indexer (SPEC section 3, stage 1). */
typedef enum xtk_kind {
  XTK_KIND_INDEX = 0, /* residual + T partial sums, added one after another */
  XTK_KIND_DENSE = 1, /* residual + one output (partials [1][R][hidden]) */
  XTK_KIND_EMBED = 2  /* the bf16 embedding row of each token */
} xtk_kind;

typedef enum xtk_rope {
  XTK_ROPE_INTERLEAVED = 0,
  XTK_ROPE_HALF_SPLIT = 1
} xtk_rope;
typedef enum xtk_scale { XTK_SCALE_UE8M0 = 0, XTK_SCALE_F32 = 1 } xtk_scale;
typedef enum xtk_fp8 { XTK_FP8_E4M3FN = 0, XTK_FP8_E4M3FNUZ = 1 } xtk_fp8;
typedef enum xtk_page_layout {
  XTK_PAGE_PLAIN = 0,
  XTK_PAGE_PRESHUFFLED16 = 1
} xtk_page_layout;

typedef enum xtk_stage {
  XTK_STAGE_LAUNCH = 1, /* the whole indexer chain: inputs to list */
  XTK_STAGE_SCORE = 2,  /* index query, head weights and cache to scores */
  XTK_STAGE_SELECT = 4  /* scores to list */
} xtk_stage;

/* Every tensor of a launch. R rows, T partial sums, H index heads, M page-table
 * columns; row-major, no padding but where said. Tensors marked [layer] exist
 * once a layer, the others once (layer 0 is passed for them). Buffers are as
 * large as xtk_open's largest shapes; a launch of R rows uses the first R rows
 * with the row stride given here. */
typedef enum xtk_tensor {
  /* weights, [layer] */
  XTK_EMBEDDING = 0, /* bf16 [vocabulary][hidden], kind embed */
  XTK_INPUT_GAMMA,   /* f32 [hidden] */
  XTK_Q_A,           /* bf16 [q_lora][hidden] */
  XTK_Q_GAMMA,       /* f32 [q_lora] */
  XTK_WQ_B,          /* bf16 [H*128][q_lora] */
  XTK_WK,            /* bf16 [128][hidden] */
  XTK_K_GAMMA,       /* f32 [128] */
  XTK_K_BETA,        /* f32 [128] */
  XTK_WEIGHTS_PROJ,  /* f32 [H][hidden] */
  /* rope table, once */
  XTK_ROPE_COS, /* f32 [rope_positions][32] */
  XTK_ROPE_SIN, /* f32 [rope_positions][32] */
  /* paged index cache, [layer]: read and written */
  XTK_CACHE, /* u8 [pages][8448]: 64*128 key bytes, then 64 f32 scales */
  /* inputs of a step, once */
  XTK_RESIDUAL,  /* f32 [R][hidden], kinds index and dense */
  XTK_PARTIALS,  /* f32 [T][R][hidden] with this launch's T and R, kinds index
                    (T) and dense (T = 1) */
  XTK_TOKENS,    /* i32 [R], kind embed */
  XTK_REQUESTS,  /* i32 [R]: request of each row, -1 for a pad row */
  XTK_POSITIONS, /* i32 [R]: position p, the row sees keys 0..p; -1 for a pad
                    row */
  XTK_SLOTS, /* i32 [R]: slot that the row's own key goes to; -1 for a pad row
              */
  XTK_PAGE_TABLE, /* i32 [R][table_width] */
  XTK_INDPTR,     /* i32 [R]: offset of each row's entries in the list buffer */
  /* outputs, once */
  XTK_X,           /* bf16 [R][hidden] */
  XTK_Q_LORA,      /* bf16 [R][q_lora] */
  XTK_MAILBOX,     /* f32 [R][H][128]: index query before rope */
  XTK_RAW_KEY,     /* f32 [R][128] */
  XTK_W,           /* f32 [R][H]: head weights, the factor included */
  XTK_INDEX_QUERY, /* bf16 [R][H][128]: after rope, Hadamard and rounding */
  XTK_SCORES,      /* f32 [R][score_stride] */
  XTK_LIST,        /* i32 [list_entries]: slots */
  XTK_TENSOR_COUNT
} xtk_tensor;

typedef struct xtk_geometry {
  uint32_t struct_size;
  int32_t hidden;      /* model width, a multiple of 64 */
  int32_t q_lora;      /* rank of the query down-projection, a multiple of 64 */
  int32_t heads;       /* index heads H, a multiple of 8, at most 128 */
  int32_t head_dim;    /* 128 */
  int32_t rope_dims;   /* 64: dims 0..63 are rotated */
  int32_t page_tokens; /* 64 */
  int32_t k;           /* entries selected of a row, 1..2048 */
  int32_t rope;        /* xtk_rope */
  int32_t hadamard;    /* 1: queries and keys go through the 128-point Hadamard
                          transform */
  int32_t scale;       /* xtk_scale: format of a key's scale */
  int32_t fp8;         /* xtk_fp8: format of key bytes */
  int32_t page_layout; /* xtk_page_layout */
  float layer_norm_eps; /* of the index key's LayerNorm: 1e-6 */
  float rms_eps;        /* of the RMSNorms: 1e-5 */
} xtk_geometry;

/* What a candidate is and offers. Strings live as long as the library is
 * loaded. */
typedef struct xtk_description {
  uint32_t struct_size; /* set by the caller */
  const char* name;     /* "exact-topk cpu" */
  const char* version;  /* "0.1.0" */
  const char* device;  /* "cpu", "nvidia", "amd" or what the stranger runs on */
  uint32_t stages;     /* xtk_stage bits */
  uint32_t wave_sizes; /* 32, 64 or 96 (both); 0: the candidate has no say */
  uint64_t published;  /* bit t: tensor t can be read after a launch */
  int32_t clobbers_score_tail; /* 1: scores at and past n may be written
                                  (reported, not failed) */
  int32_t repeatable;          /* 1: claims the same bits in every replay */
  const char* contract; /* what the list promises (SPEC section 11): "base",
                           "set", "values", ... */
  const char* const*
      arms; /* names of the arms, the first is the default; NULL-terminated */
  int32_t devices; /* devices that are visible now, whose ordinals xtk_open
                      takes; 0: unknown, or none. Not there where struct_size
                      ends before it */
} xtk_description;

typedef struct xtk_open_options {
  uint32_t struct_size;
  int32_t device; /* ordinal among the visible devices */
  xtk_geometry geometry;
  int32_t max_rows;       /* largest R, 1..8 for launches */
  int32_t max_partials;   /* largest T */
  int32_t layers;         /* layers whose weights and caches are held at once */
  int32_t pages;          /* pages of each layer's cache, page 0 included */
  int32_t table_width;    /* M */
  int32_t vocabulary;     /* rows of the embedding table, 0 without one */
  int64_t max_keys;       /* largest n */
  int64_t score_stride;   /* f32 entries from one row of scores to the next */
  int64_t rope_positions; /* rows of the rope table */
  int64_t
      list_entries; /* i32 entries of the list buffer, guard entries included */
  int32_t wave_size; /* 64 or 32; 0: the candidate's default */
  int32_t
      blocks; /* persistent or resident blocks; 0: the candidate's default */
  const char*
      schedule;  /* order in which a simulated device runs threads:
                    "round-robin", "reverse", "random:7"; NULL: default */
  uint64_t seed; /* of the pattern that fresh device memory and LDS hold;
                    scratch is filled once, here */
} xtk_open_options;

typedef struct xtk_launch_args {
  uint32_t struct_size;
  const char* arm;  /* one of xtk_description.arms */
  int32_t layer;    /* whose weights and cache, 0..layers-1 */
  int32_t kind;     /* xtk_kind */
  int32_t rows;     /* R */
  int32_t partials; /* T for kind index, 1 for dense, 0 for embed */
} xtk_launch_args;

/* Selection alone. Row r's scores are scores[row_start[r] .. row_start[r] +
 * lengths[r]); what lies outside is not the row's. */
typedef struct xtk_select_args {
  uint32_t struct_size;
  const char* arm;
  int32_t rows;        /* R, any number that the candidate takes; ours: 1..8 */
  int32_t k;           /* entries of a full row */
  const float* scores; /* f32 [scores_count] */
  int64_t scores_count;
  const int64_t* row_start;  /* [R] */
  const int32_t* lengths;    /* [R]: n of each row, 0 allowed */
  const int32_t* page_table; /* [R][table_width]: entries are slots; NULL:
                                entries are positions */
  int32_t table_width;
  const int32_t* indptr; /* [R]: offset of each row's entries in list */
  int32_t* list; /* out, i32 [list_entries]; only min(n,k) entries at indptr[r]
                    may be written */
  int64_t list_entries;
} xtk_select_args;

/* Scores alone. */
typedef struct xtk_score_args {
  uint32_t struct_size;
  const char* arm;
  int32_t rows;                /* R */
  const uint16_t* index_query; /* bf16 [R][H][128], after stage 3 */
  const float* weights;        /* f32 [R][H] */
  const uint8_t* cache;        /* u8 [pages][8448] */
  int32_t pages;
  const int32_t* page_table; /* i32 [R][table_width] */
  int32_t table_width;
  const int32_t* lengths; /* i32 [R] */
  float*
      scores; /* out, f32 [R][score_stride]; nothing at or past n is written */
  int64_t score_stride;
} xtk_score_args;

/* Which paths the last launch or selection took for one row; 0 where the path
 * does not exist in the arm. */
typedef struct xtk_witness_row {
  uint32_t struct_size;
  int32_t live;       /* 1 unless a pad row */
  int32_t stop_bits;  /* bits at which the radix prefix stopped: 0 (n <= k), 12,
                         24 or 32 */
  int32_t slices;     /* runs of positions that selected the row */
  int32_t group;      /* first row of the group that scored it together (its own
                         number in base) */
  int32_t group_rows; /* rows of that group */
  int32_t runs;       /* runs of pages that scored the group's request */
  int32_t batches;    /* page batches of the longest run */
  int32_t patched_keys; /* keys taken from tagged pairs instead of the cache */
  int32_t staged;       /* entries resolved by the row's first slice */
  int32_t direct_ties;  /* ties placed directly at 32 bits */
  int32_t chunks;       /* chunks of the longest slice */
} xtk_witness_row;

/* Timing by replay: runs the work of the last xtk_launch, xtk_select or
 * xtk_score again, or that of the last few launches. */
typedef struct xtk_replay_args {
  uint32_t struct_size;
  int32_t stage;    /* xtk_stage of the call to repeat */
  const char* part; /* NULL: the whole; else "front", "key-and-query",
                       "scoring", "selection", or "empty": a launch of as many
                       blocks that do nothing. XTK_UNSUPPORTED for one that
                       the candidate does not have: it is left out */
  int32_t replays;  /* how often between two events */
  int32_t cold;     /* 1: store to twice the L2 cache before each, which evicts
                       it; the time that such stores take by themselves, measured
                       in the same call, is taken off the answer */
  int32_t calls;    /* a replay repeats the last so many calls of the stage, in
                       their order, 64 launches at most; 0 is 1, as more are of
                       no stage but XTK_STAGE_LAUNCH. Not there where
                       struct_size ends before it */
} xtk_replay_args;

typedef struct xtk_candidate
    xtk_candidate; /* an open candidate; its content is its own */

XTK_EXPORT uint32_t xtk_abi_version(void);
XTK_EXPORT xtk_status xtk_describe(xtk_description* description);
/* Opens the candidate. On failure *candidate is NULL and xtk_last_error(NULL)
 * says why. */
XTK_EXPORT xtk_status xtk_open(const xtk_open_options* options,
                               xtk_candidate** candidate);
/* One sentence on the last failure of this candidate, or of xtk_open in this
 * thread for NULL. Valid until the next call. */
XTK_EXPORT const char* xtk_last_error(const xtk_candidate* candidate);
XTK_EXPORT void xtk_close(xtk_candidate* candidate);

/* Bytes of a tensor's buffer, 0 for one that the candidate does not hold. */
XTK_EXPORT uint64_t xtk_tensor_bytes(const xtk_candidate* candidate,
                                     xtk_tensor tensor);
/* Byte ranges of any tensor, inputs and outputs alike (the harness poisons
 * outputs and looks for edited inputs). */
XTK_EXPORT xtk_status xtk_write(xtk_candidate* candidate, xtk_tensor tensor,
                                int32_t layer, uint64_t offset, uint64_t bytes,
                                const void* source);
XTK_EXPORT xtk_status xtk_read(xtk_candidate* candidate, xtk_tensor tensor,
                               int32_t layer, uint64_t offset, uint64_t bytes,
                               void* destination);
/* The tensor's memory where the host can read it in place, else NULL. Valid
 * until xtk_close; read only between xtk_wait and the next xtk_launch. */
XTK_EXPORT const void* xtk_view(xtk_candidate* candidate, xtk_tensor tensor,
                                int32_t layer);

XTK_EXPORT xtk_status xtk_launch(xtk_candidate* candidate,
                                 const xtk_launch_args* args);
XTK_EXPORT xtk_status xtk_wait(xtk_candidate* candidate);
XTK_EXPORT xtk_status xtk_select(xtk_candidate* candidate,
                                 const xtk_select_args* args);
XTK_EXPORT xtk_status xtk_score(xtk_candidate* candidate,
                                const xtk_score_args* args);
XTK_EXPORT xtk_status xtk_witness(xtk_candidate* candidate, int32_t row,
                                  xtk_witness_row* witness);
/* Microseconds of one replay, the mean over args->replays, between device
 * events (on cpu: a steady clock, not a kernel time). */
XTK_EXPORT xtk_status xtk_replay(xtk_candidate* candidate,
                                 const xtk_replay_args* args,
                                 double* microseconds);
/* Makes a replay ready (captured, uploaded, warmed up), so that the next
 * xtk_replay of the same arguments does nothing but the replays: the harness
 * compares its wall time with what it claims. Any launch, selection or scoring
 * between the two undoes it. */
XTK_EXPORT xtk_status xtk_prepare_replay(xtk_candidate* candidate,
                                         const xtk_replay_args* args);
/* Device bytes that the launches of an arm need besides the tensors, those that
 * it shares with other arms included; 0 for an arm that is not there. For a
 * NULL arm: all that are held, arguments of selections and scorings included.
 */
XTK_EXPORT uint64_t xtk_scratch_bytes(const xtk_candidate* candidate,
                                      const char* arm);

#ifdef __cplusplus
}
#endif

#endif
