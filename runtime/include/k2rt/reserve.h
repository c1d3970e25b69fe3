/* What the runtime takes beside weights, code, cache, arena, scratch and logits: manifest "memory.reserve_bytes", and
 * what its workers add to it.
 *
 * One formula for both sides: the compiler writes k2rt_reserve_bytes into the manifest, the runtime stays within it.
 * Together with the other lines of "memory" it bounds the anonymous memory of a run:
 *   anonymous RSS <= cache + arena + threads * scratch_per_worker + collectives + logits + reserve_bytes
 *                    + k2rt_worker_bytes(threads)
 * reserve_bytes covers, in this order: the process (C library, relocated data, heap, manifest and index of weights:
 * measured 350 to 490 KiB, with an index of 200 KB and a manifest of 17 KB), the tables of routed experts, a row of
 * logits that is printed, the arrays of one step, the token history of the admitted sequences, and the tokenizer's
 * tables. Workers have a stack (measured 8 KiB each), and those that sample a work space. Not covered, because only
 * inspection commands have them: captured routes and hidden states. "collectives" is k2rt_exchange_bytes.
 */
#ifndef K2RT_RESERVE_H
#define K2RT_RESERVE_H

#include "k2rt/numerics.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Code, relocated data, heap and manifest of the process. */
#define K2RT_RESERVE_PROCESS_BYTES (INT64_C(576) * 1024)
/* An expert's entry in the index and in the table of its slot, its range and hashes: measured 440. */
#define K2RT_RESERVE_EXPERT_BYTES INT64_C(512)
/* Touched stack and thread-local data of a worker. */
#define K2RT_RESERVE_WORKER_BYTES (INT64_C(8) * 1024)
/* The communication thread of a rank: stack, thread-local data, messages under way and its counters. */
#define K2RT_EXCHANGE_THREAD_BYTES (INT64_C(256) * 1024)
/* What a library takes of a rank to carry messages, measured with 2 and 8 ranks of Debian 12: UCX 1.13 0.3 to 1.1 MB
 * within a host and up to 2.0 MB between hosts over TCP, Open MPI 4.1 2.1 to 2.6 MB within a host. Ranks that are
 * threads of one process need none. */
#define K2RT_UCX_BYTES (INT64_C(2048) * 1024)
#define K2RT_MPI_BYTES (INT64_C(2560) * 1024)
/* A CUDA context, its modules and graphs: estimated, no device has been measured. */
#define K2RT_GPU_CONTEXT_BYTES (INT64_C(512) * 1024 * 1024)
/* What a GPU's driver takes of its process: estimated likewise. */
#define K2RT_GPU_DRIVER_BYTES (INT64_C(256) * 1024 * 1024)
/* Two pinned buffers, of the bytes that have a hash each, through which weights go to a GPU. */
#define K2RT_GPU_STAGING_BYTES (INT64_C(2) * 2048 * 1024)
/* Step arrays per token row: ids, positions, sequence, form, output row, sample (i32 each). */
#define K2RT_RESERVE_TOKEN_ROW_BYTES INT64_C(24)
/* Step arrays per sequence: sampling parameters, lengths in its groups, begin, last sample, scheduler state. */
#define K2RT_RESERVE_SEQUENCE_BYTES INT64_C(1024)
/* Sampler work space per vocabulary entry: a weight and an id; and how many workers sample side by side. */
#define K2RT_RESERVE_SAMPLER_BYTES INT64_C(8)
#define K2RT_RESERVE_SAMPLERS INT64_C(4)
#define K2RT_GPU_SAMPLERS INT64_C(16)
/* Tokenizer tables, and the file while it is read, per byte of tokenizer.json (or tiktoken.model): measured 4.3. */
#define K2RT_RESERVE_TOKENIZER_FACTOR INT64_C(5)

/* What the reserve depends on: the manifest's "limits", and three facts of the model. */
typedef struct k2rt_limits {
  int64_t step_tokens;     /* most token rows of one step */
  int64_t max_sequences;   /* most sequences of one step */
  int64_t max_context;     /* most tokens of one sequence, prompt and generated */
  int64_t cache_groups;    /* of manifest "cache": block tables, lengths and append slots */
  int64_t vocab;           /* logits per row */
  int64_t tokenizer_bytes; /* size of the tokenizer's file in the bundle; 0: none */
  int64_t experts;         /* routed experts of all weight slots: manifest "shares" */
} k2rt_limits;

/* Pages that a sequence of max_context tokens needs in one group: also the step's block_stride. */
static inline int64_t k2rt_pages_per_sequence(const k2rt_limits *limits) {
  return (limits->max_context + K2RT_PAGE_TOKENS - 1) / K2RT_PAGE_TOKENS;
}

/* How many workers sample side by side, if there are as many. */
static inline int64_t k2rt_samplers(const k2rt_limits *limits) {
  return limits->max_sequences < K2RT_RESERVE_SAMPLERS ? limits->max_sequences : K2RT_RESERVE_SAMPLERS;
}

/* Bytes of the arrays of one step and of the token history of its sequences; each array is 64-byte aligned. */
static inline int64_t k2rt_step_bytes(const k2rt_limits *limits) {
  const int64_t alignment = 64 * (14 + 4 * limits->cache_groups);
  const int64_t slots = limits->cache_groups * limits->step_tokens * 8;
  const int64_t tables = limits->cache_groups * limits->max_sequences * k2rt_pages_per_sequence(limits) * 4;
  const int64_t history = limits->max_sequences * (limits->max_context + 1) * 4;
  return limits->step_tokens * K2RT_RESERVE_TOKEN_ROW_BYTES + limits->max_sequences * K2RT_RESERVE_SEQUENCE_BYTES +
         slots + 2 * tables + history + alignment; /* tables twice: the page allocator's lists are as large */
}

/* Bytes of what a step in two halves has beside its arrays: rows of sequences and output rows of the second half,
 * where sequences begin in each, lengths in each group. */
static inline int64_t k2rt_halves_bytes(const k2rt_limits *limits) {
  return limits->step_tokens * 8 + (limits->max_sequences + 1) * 8 + limits->cache_groups * limits->max_sequences * 4;
}

/* Of the reserve, the tokenizer's: taken when the first text is read or written. */
static inline int64_t k2rt_tokenizer_reserve(const k2rt_limits *limits) {
  return limits->tokenizer_bytes * K2RT_RESERVE_TOKENIZER_FACTOR;
}

/* Of several ranks, what one takes to run steps together, over a library that takes `library` bytes. Rank 0 keeps the
 * arrays of a step for each of the `kept` ranks, all, sends them as records and gets samples back; others keep none.
 * Each rank has room for one record and its results, and may cut a step in halves. manifest "memory.collectives" is
 * that of rank 0 over MPI. A record has no more bytes than the arrays that it
 * is made of. Messages of the program itself are in the arena. Not covered, as with one rank: captured routes and
 * hidden states, and rows of logits that a command has sent to rank 0 to print them. */
static inline int64_t k2rt_exchange_bytes(const k2rt_limits *limits, int64_t kept, int64_t library) {
  const int64_t record = k2rt_step_bytes(limits), results = limits->step_tokens * 4;
  return K2RT_EXCHANGE_THREAD_BYTES + library + kept * (2 * record + results) + record + results +
         k2rt_halves_bytes(limits);
}

/* manifest "memory.reserve_bytes": what does not depend on the number of workers. */
static inline int64_t k2rt_reserve_bytes(const k2rt_limits *limits) {
  return K2RT_RESERVE_PROCESS_BYTES + limits->experts * K2RT_RESERVE_EXPERT_BYTES + limits->vocab * 4 +
         k2rt_step_bytes(limits) + k2rt_tokenizer_reserve(limits);
}

/* Bytes of `ranks` ranks on one host: each takes `peak`, of which `shared`, code and weights that all have, are in
 * memory once. */
static inline int64_t k2rt_host_bytes(int64_t ranks, int64_t peak, int64_t shared) {
  return ranks * peak - (ranks - 1) * shared;
}

/* Of a GPU, what steps leave: their status and a sample of each row. */
static inline int64_t k2rt_gpu_outcome_bytes(const k2rt_limits *limits) { return 128 + limits->step_tokens * 4; }

/* Of a GPU, bytes of the arrays of two steps, one behind the other, as kernels read them, with the steps themselves,
 * and of what they leave: in the device's memory, and once more in pinned memory of the host. Each array is 64-byte
 * aligned.
 */
static inline int64_t k2rt_gpu_step_bytes(const k2rt_limits *limits) {
  const int64_t headers = 320 + 64 * (9 + 3 * limits->cache_groups); /* the step, alignment */
  const int64_t rows = limits->step_tokens * (20 + 8 * limits->cache_groups);
  const int64_t table = limits->max_sequences * k2rt_pages_per_sequence(limits) * 4;
  const int64_t groups = limits->cache_groups * (limits->max_sequences * 4 + table + 24);
  return 2 * (headers + rows + limits->max_sequences * 4 + groups) + k2rt_gpu_outcome_bytes(limits);
}

/* What a GPU's memory holds beside the program's parts: context, modules and graphs, an estimate; a step's arrays; the
 * tables of routed experts. Not covered, as with processors: captured routes and hidden states. */
static inline int64_t k2rt_gpu_reserve_bytes(const k2rt_limits *limits) {
  return K2RT_GPU_CONTEXT_BYTES + k2rt_gpu_step_bytes(limits) + limits->experts * 8;
}

/* How many rows the host of a GPU draws side by side, if it has as many processors. */
static inline int64_t k2rt_gpu_samplers(const k2rt_limits *limits) {
  return limits->max_sequences < K2RT_GPU_SAMPLERS ? limits->max_sequences : K2RT_GPU_SAMPLERS;
}

/* What the process of a GPU holds beside k2rt_reserve_bytes: its one worker, those that draw, the arrays of steps once
 * more and what each of the two leaves, `logits` bytes of results, weights on their way, and the driver. */
static inline int64_t k2rt_gpu_host_bytes(const k2rt_limits *limits, int64_t logits) {
  return K2RT_GPU_DRIVER_BYTES + K2RT_GPU_STAGING_BYTES + k2rt_gpu_step_bytes(limits) + k2rt_gpu_outcome_bytes(limits) +
         logits + k2rt_gpu_samplers(limits) * (K2RT_RESERVE_WORKER_BYTES + limits->vocab * K2RT_RESERVE_SAMPLER_BYTES);
}

/* Stacks of so many workers, and the work space of those that sample. */
static inline int64_t k2rt_worker_bytes(const k2rt_limits *limits, int64_t workers) {
  const int64_t samplers = workers < k2rt_samplers(limits) ? workers : k2rt_samplers(limits);
  return workers * K2RT_RESERVE_WORKER_BYTES + samplers * limits->vocab * K2RT_RESERVE_SAMPLER_BYTES;
}

#ifdef __cplusplus
}
#endif
#endif
