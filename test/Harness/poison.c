// Preloaded by check_poison.py: bytes that nobody may read are the word POISON, eight hex digits.
//
//   at start       every anonymous mapping of the runtime (cache, arena, scratch, step arrays, logits) begins as poison
//                  instead of zeros; the runtime touches each page once
//   before a step  arena, scratch and logits are poison again; so are the cache slots of its sequences from the rows of
//                  the step on, to the end of their pages, what step arrays and block tables hold behind the step's
//                  rows, and the block table entries behind the pages that a sequence's tokens are in
//
// The loader gives the runtime the program's description; here it gets a copy whose step function poisons first. What
// it needs to know of the manifest is POISON_LIMITS="step_tokens max_sequences logits_bytes", and POISON_PLANES=
// "group layers pages token_bytes" of each plane, one after the other. At exit POISONED gets the number of bytes that
// were poison at start, and of those poisoned before steps.
#define _GNU_SOURCE
#include "k2rt/program.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page_tokens = 64, most_planes = 64 };

static size_t poisoned, poisoned_by_steps;

static void poison(void *from, int64_t bytes) {
  const uint32_t word = (uint32_t)strtoul(getenv("POISON"), NULL, 16);
  unsigned char *at = from;
  for (int64_t i = 0; i < bytes; i += 4)
    memcpy(at + i, &word, (size_t)(bytes - i < 4 ? bytes - i : 4));
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
  void *base = (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
  if (getenv("POISON") && base != MAP_FAILED && (flags & MAP_ANONYMOUS) && (protection & PROT_WRITE)) {
    poison(base, (int64_t)length);
    poisoned += length;
  }
  return base;
}

static k2rt_ir_program program;
static k2rt_ir_step_fn serve;

struct plane {
  int64_t group, layers, pages, token_bytes;
};
static struct {
  int64_t step_tokens, max_sequences, logits_bytes;
  int n_planes, n_groups;
  struct plane planes[most_planes];
} known;

static void read_known(void) {
  const char *limits = getenv("POISON_LIMITS"), *planes = getenv("POISON_PLANES");
  if (!limits || !planes ||
      sscanf(limits, "%ld %ld %ld", &known.step_tokens, &known.max_sequences, &known.logits_bytes) != 3)
    abort();
  for (int used = 0; known.n_planes < most_planes; planes += used) {
    struct plane *plane = &known.planes[known.n_planes];
    if (sscanf(planes, "%ld %ld %ld %ld%n", &plane->group, &plane->layers, &plane->pages, &plane->token_bytes, &used) !=
        4)
      break;
    ++known.n_planes;
    known.n_groups = plane->group >= known.n_groups ? (int)plane->group + 1 : known.n_groups;
  }
}

static void poison_now(void *from, int64_t bytes) {
  poison(from, bytes);
  poisoned_by_steps += (size_t)bytes;
}

/// Elements [used, all) of an array of a step.
static void poison_rest(void *array, int64_t used, int64_t all, int64_t bytes) {
  if (array)
    poison_now((char *)array + used * bytes, (all - used) * bytes);
}

/// A sequence's cache slots from the first row of this step on, which the step writes before it reads them, and the
/// rest of its block table.
static void poison_sequence(const k2rt_ir_worker *w, const k2rt_ir_step *s, int group, int64_t sequence) {
  const int32_t *begins = s->seq_begin, *cached = ((int32_t **)s->seq_len)[group];
  int32_t *table = ((int32_t **)s->block_tables)[group] + sequence * s->block_stride;
  const int64_t first = cached[sequence], end = first + begins[sequence + 1] - begins[sequence];
  const int64_t pages = (end + page_tokens - 1) / page_tokens;
  for (int i = 0; i < known.n_planes; ++i) {
    const struct plane *plane = &known.planes[i];
    for (int64_t position = first; plane->group == group && position < pages * page_tokens; ++position)
      for (int64_t layer = 0; layer < plane->layers; ++layer) {
        const int64_t page = layer * plane->pages + table[position / page_tokens];
        poison_now((char *)((void **)w->planes)[i] + (page * page_tokens + position % page_tokens) * plane->token_bytes,
                   plane->token_bytes);
      }
  }
  poison_rest(table, pages, s->block_stride, 4);
}

static void poison_arrays(const k2rt_ir_step *s) {
  void *rows[] = {s->token_ids, s->positions, s->row_seq, s->row_form};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    poison_rest(rows[i], s->token_rows, known.step_tokens, 4);
  poison_rest(s->outputs, s->output_rows, known.step_tokens, 4);
  poison_rest(s->samples, s->output_rows, known.step_tokens, 4);
  poison_rest(s->seq_begin, s->seq_rows + 1, known.max_sequences + 1, 4);
  poison_rest(s->last_sample, s->seq_rows, known.max_sequences, 4);
  if (s->output_rows < known.max_sequences)
    poison_rest(s->sampling, s->output_rows, known.max_sequences, sizeof(k2rt_ir_sampling));
  for (int group = 0; group < known.n_groups; ++group) {
    poison_rest(((void **)s->seq_len)[group], s->seq_rows, known.max_sequences, 4);
    poison_rest(((void **)s->append_slots)[group], s->token_rows, known.step_tokens, 8);
    poison_rest(((void **)s->block_tables)[group], s->seq_rows * s->block_stride, known.max_sequences * s->block_stride,
                4);
  }
}

static int32_t poison_and_serve(k2rt_ir_worker *w) {
  const k2rt_ir_step *s = w->step;
  if (w->index == 0) {
    poison_now(w->arena, program.arena_bytes);
    poison_now(s->logits, known.logits_bytes);
    poison_arrays(s);
    for (int group = 0; group < known.n_groups; ++group)
      for (int64_t sequence = 0; sequence < s->seq_rows; ++sequence)
        poison_sequence(w, s, group, sequence);
  }
  poison(w->scratch, w->scratch_bytes);
  const int32_t stop = ((k2rt_ir_barrier_fn)((const k2rt_ir_api *)w->api)->barrier)(w);
  return stop ? stop : serve(w);
}

static k2rt_ir_query_fn query;

static const k2rt_ir_program *poisoning(uint32_t abi) {
  const k2rt_ir_program *found = query(abi);
  if (!found || !getenv("POISON"))
    return found;
  read_known();
  program = *found;
  static k2rt_ir_step_fn entries[8];
  if (program.n_entries > (int32_t)(sizeof entries / sizeof entries[0]))
    abort();
  for (int32_t i = 0; i < program.n_entries; ++i) {
    entries[i] = ((const k2rt_ir_step_fn *)program.entries)[i];
    if (strcmp(((const char *const *)program.entry_names)[i], "serve") != 0)
      continue;
    serve = entries[i];
    entries[i] = poison_and_serve;
  }
  program.entries = (void *)entries;
  return &program;
}

void *dlsym(void *handle, const char *name) {
  static void *(*find)(void *, const char *);
  if (!find)
    find = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  void *found = find(handle, name);
  if (!found || strcmp(name, K2RT_PROGRAM_QUERY_NAME) != 0)
    return found;
  query = (k2rt_ir_query_fn)found;
  return (void *)poisoning;
}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("POISONED");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%zu %zu\n", poisoned, poisoned_by_steps);
    fclose(file);
  }
}
