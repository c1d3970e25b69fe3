/* A hand-written program for tests of the runtime: a "model" whose logits show everything a step carries.
 *
 * It keeps each token's id in plane 0 (written through append_slots) and, for an output row, reads the whole sequence
 * back through the block table: hash = fold of (id, position) over positions 0..p. The row's logits are 1 at
 * (hash + weight) % vocab and small distinct numbers elsewhere. So any mistake in paging, chunking, batching, positions
 * or thread partition changes the result. Plane 1 keeps the segment form of each token; forms enter the hash, too.
 * With FAKE_GROUPS=2 plane 1 is of a cache group of its own; lengths of each group are checked against positions.
 * Environment-free and without writable globals, like a compiled program. FAKE_* come from the build.
 */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* usleep */
#endif
#include "k2rt/placement.h"
#include "k2rt/program.h"
#include <math.h>
#include <stddef.h>
#include <unistd.h>

#ifndef FAKE_ABI
#define FAKE_ABI K2RT_ABI_VERSION
#endif
#ifndef FAKE_ALWAYS /* 1: the program says what it is to a runtime of any ABI */
#define FAKE_ALWAYS 0
#endif
#ifndef FAKE_SERVE
#define FAKE_SERVE serve
#endif
#ifndef FAKE_ENTRY
#define FAKE_ENTRY "serve"
#endif
#ifndef FAKE_ENTRIES
#define FAKE_ENTRIES 2
#endif
#ifndef FAKE_BEST /* the largest logit */
#define FAKE_BEST (1.0f + 1.0f / 3.0f)
#endif
#ifndef FAKE_QUERY
#define FAKE_QUERY k2c_program_query
#endif
#ifndef FAKE_HIDDEN
#define FAKE_HIDDEN 8
#endif
#ifndef FAKE_EXPERTS /* above 0: slot 0 is a table of so many experts; a token's is its id modulo their number */
#define FAKE_EXPERTS 0
#endif
#ifndef FAKE_SLOTS /* above 0: of several ranks, each with so many slots for experts, which are slot 1 */
#define FAKE_SLOTS 0
#endif
#ifndef FAKE_GROUPS
#define FAKE_GROUPS 1
#endif
enum { vocab = 97, hidden = FAKE_HIDDEN, layers = 2, experts = 16, top_k = 2, pages = 64, arena_bytes = FAKE_ARENA };

static const k2rt_ir_step *step_of(const k2rt_ir_worker *w) { return (const k2rt_ir_step *)w->step; }
static int32_t *cell(const k2rt_ir_worker *w, int plane, int64_t layer, int64_t slot) {
  return (int32_t *)((void **)w->planes)[plane] + (layer * pages * 64 + slot);
}
static int32_t id_of(const k2rt_ir_step *s, int64_t row) {
  const int32_t id = ((const int32_t *)s->token_ids)[row];
  return id >= 0 ? id : ((const int32_t *)s->earlier_samples)[-1 - id];
}

/* Which token of a cache group a row is. */
static int32_t token_of(const k2rt_ir_step *s, int group, int64_t row) {
  const int32_t sequence = ((const int32_t *)s->row_seq)[row], first = ((const int32_t *)s->seq_begin)[sequence];
  return ((const int32_t *const *)s->seq_len)[group][sequence] + (int32_t)row - first;
}
/* Where token p of a sequence lies in a cache group, or -1. */
static int64_t slot_of(const k2rt_ir_step *s, int group, int32_t sequence, int64_t p) {
  const int32_t page = ((const int32_t *const *)s->block_tables)[group][sequence * s->block_stride + p / 64];
  return page < 0 || page >= pages ? -1 : (int64_t)page * 64 + p % 64;
}

/* The entry of a token's expert. */
static const void *const *expert_of(const k2rt_ir_worker *w, int32_t id) {
  return ((const void *const *const *)w->weights)[0] + id % (FAKE_EXPERTS > 0 ? FAKE_EXPERTS : 1);
}

/* Kernel 0: one grid item per token row; stores id and form in every layer. Variants: "one" row or "many". */
static int32_t append(k2rt_ir_worker *w, void *const *args) {
  const k2rt_ir_step *s = step_of(w);
  const int32_t *forms = (const int32_t *)s->row_form;
  (void)args;
  w->variant = w->end - w->begin > 1;
  for (int64_t row = w->begin; row < w->end; ++row) {
    if (row > 0 && id_of(s, row) == 96 && id_of(s, row - 1) == 96) /* what this program refuses */
      return 7;
    if (FAKE_EXPERTS > 0 && !*expert_of(w, id_of(s, row))) {
      w->absent = (void *)expert_of(w, id_of(s, row));
      return K2RT_STATUS_ABSENT_EXPERT;
    }
    for (int plane = 0; plane < 2; ++plane) {
      const int group = plane == 0 ? 0 : FAKE_GROUPS - 1;
      const int64_t slot = ((const int64_t *const *)s->append_slots)[group][row];
      if (slot < 0 || slot >= pages * 64) /* no place in the cache: the row's page was never given */
        return 10;
      if (token_of(s, group, row) != ((const int32_t *)s->positions)[row])
        return 11;
      for (int64_t layer = 0; layer < layers; ++layer)
        *cell(w, plane, layer, slot) = plane == 0 ? id_of(s, row) : forms[row];
    }
  }
  return 0;
}

/* A row's first forced expert, which goes into its hidden states and its hash; 0 where none is forced. */
static int32_t forced_of(const k2rt_ir_step *s, int64_t row) {
  const int32_t *forced = (const int32_t *)s->forced_experts;
  return forced && forced[row * top_k] >= 0 ? forced[row * top_k] : 0;
}

/* Kernel 1: captures and forced routes. */
static int32_t capture(k2rt_ir_worker *w, void *const *args) {
  const k2rt_ir_step *s = step_of(w);
  const int32_t *positions = (const int32_t *)s->positions;
  (void)args;
  for (int64_t row = w->begin; row < w->end; ++row)
    for (int64_t j = 0; j < top_k; ++j) { /* one MoE layer: checkpoint layer 1 */
      const int64_t at = row * top_k + j;
      const int32_t *forced = (const int32_t *)s->forced_experts;
      const int is_forced = forced && forced[at] >= 0;
      if (s->capture_experts)
        ((int32_t *)s->capture_experts)[at] =
            is_forced ? forced[at] : (id_of(s, row) + positions[row] + (int32_t)j) % experts;
      if (s->capture_weights) /* slot 0 has the smaller weight: the runtime must sort */
        ((float *)s->capture_weights)[at] = 0.25f + 0.5f * (float)j;
    }
  if (s->capture_hidden)
    for (int64_t layer = 0; layer <= layers; ++layer)
      for (int64_t row = w->begin; row < w->end; ++row)
        for (int64_t i = 0; i < hidden; ++i)
          ((float *)s->capture_hidden)[(layer * s->token_rows + row) * hidden + i] =
              (float)layer + (float)id_of(s, row) / 128.0f + (float)(i % 8) / 1024.0f + (float)forced_of(s, row);
  return 0;
}

/* Kernel 2: one grid item per output row. */
static int32_t logits(k2rt_ir_worker *w, void *const *args) {
  const k2rt_ir_step *s = step_of(w);
  const int32_t *positions = (const int32_t *)s->positions, *sequences = (const int32_t *)s->row_seq;
  const int32_t *weight = FAKE_EXPERTS > 0 ? *expert_of(w, 0) : ((const void *const *)w->weights)[0];
  (void)args;
  for (int64_t i = w->begin; i < w->end; ++i) {
    const int64_t row = ((const int32_t *)s->outputs)[i];
    uint32_t hash = (uint32_t)*weight;
    for (int64_t p = 0; p <= positions[row]; ++p) {
      const int64_t slot = slot_of(s, 0, sequences[row], p), of_form = slot_of(s, FAKE_GROUPS - 1, sequences[row], p);
      if (slot < 0 || of_form < 0)
        return 10;
      hash = hash * 31u + (uint32_t)(*cell(w, 0, layers - 1, slot) + 3 * *cell(w, 1, 0, of_form)) + (uint32_t)p;
    }
    hash += (uint32_t)forced_of(s, row);
    float *out = (float *)s->logits + i * vocab;
    for (int64_t v = 0; v < vocab; ++v)
      out[v] = FAKE_BEST == FAKE_BEST ? (float)v / 1024.0f : FAKE_BEST;
    out[hash % 90] = FAKE_BEST; /* 90..96 never win: reserved */
  }
  return 0;
}

/* Kernel 3: denormals must read as zero on every worker (numerics N6), and a worker that waited must have fetched
 * nothing but what was named. */
static int32_t check_mode(k2rt_ir_worker *w, void *const *args) {
  volatile float tiny = 1e-40f;
  (void)args;
  if ((char *)w->prefetch < (char *)w->arena || (char *)w->prefetch > (char *)w->prefetch_end)
    return 8;
  return tiny * 1.0f == 0.0f ? 0 : 9;
}

#if FAKE_SLOTS > 0
#include "fake_ranks.inc"
#define FAKE_RANKS ((16 + FAKE_SLOTS - 1) / FAKE_SLOTS) /* of 16 experts */
static const k2rt_ir_collective sites[] = {
    {K2RT_ALL_TO_ALL_ROWS, K2RT_AXIS_EP, sizeof(fake_row), fake_quota, FAKE_RANKS},
    {K2RT_ALL_TO_ALL_ROWS, K2RT_AXIS_EP, sizeof(fake_row), 0, FAKE_RANKS}};
#else
static const k2rt_ir_collective *const sites = NULL;
static int32_t exchange_rows(k2rt_ir_worker *w) {
  (void)w;
  return 0;
}
#endif

#ifdef FAKE_MISTAKE
#include "fake_gpu.inc"
#endif

static int32_t serve(k2rt_ir_worker *w) {
  const k2rt_ir_step *s = step_of(w);
  const k2rt_ir_api *api = (const k2rt_ir_api *)w->api;
  const k2rt_ir_launch_fn launch = (k2rt_ir_launch_fn)api->launch, nowait = (k2rt_ir_launch_fn)api->launch_nowait;
  w->prefetch = w->arena;
  w->prefetch_end = (char *)w->arena + 1000;
  int32_t stop = nowait(w, 0, append, s->token_rows, NULL); /* 0 even when it fails: the next launch says so */
  if (!stop)
    stop = launch(w, 1, capture, s->token_rows, NULL);
  for (int i = 0; i < FAKE_ROUNDS && !stop; ++i)
    stop = launch(w, 3, check_mode, w->count, NULL);
  if (!stop)
    stop = exchange_rows(w);
  if (!stop)
    stop = launch(w, 2, logits, s->output_rows, NULL);
  return stop ? stop : ((k2rt_ir_barrier_fn)api->sample)(w);
}

/* A step function that gives up by itself, not a kernel of it. */
static int32_t fail(k2rt_ir_worker *w) {
  (void)w;
  return 5;
}

static const char *const names[] = {"append",      "capture", "logits", "check_mode",
                                    "plan_routes", "answer",  "turn",   "check_back"};
static const char *const variants[] = {"one|many", "only", "only", "only", "only", "only", "only", "only"};
static const char *const entry_names[] = {"other", FAKE_ENTRY};
static const k2rt_ir_step_fn entries[] = {fail, FAKE_SERVE};
static const int64_t slot_bytes[] = {4096 * (FAKE_EXPERTS > 0 ? FAKE_EXPERTS : 1), 4096 * FAKE_SLOTS};
static const int64_t slot_experts[] = {FAKE_EXPERTS, FAKE_SLOTS};
static const int64_t slot_parts[] = {1, 1};
static const k2rt_ir_program program = {
    .abi = FAKE_ABI,
    .arena_bytes = arena_bytes,
    .scratch_bytes = 4096,
    .n_weights = FAKE_SLOTS > 0 ? 2 : 1,
    .n_planes = 2,
    .n_groups = FAKE_GROUPS,
    .n_kernels = FAKE_SLOTS > 0 ? 8 : 4,
    .n_entries = FAKE_ENTRIES,
    .n_collectives = FAKE_SLOTS > 0 ? 2 : 0,
    .kernel_names = (void *)names,
    .variant_names = (void *)variants,
    .entry_names = (void *)entry_names,
    .entries = (void *)entries,
    .slot_bytes = (void *)slot_bytes,
    .slot_experts = (void *)slot_experts,
    .slot_parts = (void *)slot_parts,
    .collectives = (void *)sites,
};

__attribute__((visibility("default"))) const k2rt_ir_program *FAKE_QUERY(uint32_t abi);
__attribute__((visibility("default"))) const k2rt_ir_program *FAKE_QUERY(uint32_t abi) {
  return FAKE_ALWAYS || abi == FAKE_ABI ? &program : NULL;
}
