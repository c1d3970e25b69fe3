/* The kernels of the fake program as those of a GPU: each launch is run by a number of workers, one behind the other.
 */
#define FAKE_ARENA 65536
#define FAKE_ROUNDS 1
#define FAKE_QUERY fake_cuda_query /* nobody calls it */
#include "FakeCudaKernels.h"
#include "fake_program.c"
#include <string.h>

/* Every item of a launch runs once: kernel 3 counts them in its scratch, which a later worker of the launch reads. */
static int32_t count_items(k2rt_ir_worker *w, const k2rt_ir_gpu_launch *launch, int64_t items) {
  int64_t *counted = (int64_t *)launch->scratch;
  if (w->index == 0)
    *counted = 0;
  *counted += w->end - w->begin;
  return w->index + 1 < w->count || *counted == items ? 0 : 13;
}

/* Kernel 2 on a GPU: logits, and what is greedy of them. */
static int32_t logits_and_samples(k2rt_ir_worker *w) {
  const k2rt_ir_step *s = step_of(w);
  const int32_t result = logits(w, NULL);
  for (int64_t row = w->begin; row < w->end && result == 0; ++row) {
    const float *of = (const float *)s->logits + row * vocab;
    int32_t best = -1;
    for (int32_t id = 0; id < vocab; ++id)
      if (of[id] == of[id] && (best < 0 || of[id] > of[best]))
        best = id;
    ((int32_t *)s->samples)[row] = best;
  }
  return result;
}

static int64_t items_of(const k2rt_ir_gpu_launch *launch) {
  if (launch->rows < 0)
    return launch->items;
  const int64_t rows = *(const int64_t *)((const char *)launch->step + launch->rows);
  return (rows * launch->slots + launch->rows_per_item - 1) / launch->rows_per_item * launch->items;
}

/* Of the last launch of each kernel. */
static const void *scratch_of[4];

__attribute__((visibility("default"))) const void *fake_cuda_scratch(int32_t kernel);
__attribute__((visibility("default"))) const void *fake_cuda_scratch(int32_t kernel) { return scratch_of[kernel]; }

void fake_cuda_run(const char *name, const void *first, const uint64_t *args, int32_t workers) {
  const k2rt_ir_gpu_launch *launch = (const k2rt_ir_gpu_launch *)first;
  const k2rt_ir_step *step = (const k2rt_ir_step *)launch->step;
  k2rt_ir_gpu_status *status = (k2rt_ir_gpu_status *)launch->status;
  void *planes[] = {(void *)args[0], (void *)args[1]};
  const void *weights[] = {(const void *)args[2]};
  const int64_t items = items_of(launch);
  scratch_of[name[1] - '0'] = launch->scratch;
  if (status->result == 0)
    *(int32_t *)launch->begun = launch->number;
  for (int32_t index = 0; index < workers && status->result == 0; ++index) {
    k2rt_ir_worker w = {.step = launch->step, .planes = planes, .weights = weights, .index = index, .count = workers};
    w.begin = index * items / workers;
    w.end = (index + 1) * items / workers;
    int32_t result = 12; /* arguments are not the device's */
    if (args[3] == (uint64_t)step && args[4] == (uint64_t)step->logits)
      result = strcmp(name, "k0") == 0   ? append(&w, NULL)
               : strcmp(name, "k1") == 0 ? capture(&w, NULL)
               : strcmp(name, "k2") == 0 ? logits_and_samples(&w)
                                         : count_items(&w, launch, items);
    if (result != 0)
      status->result = result, status->launch = launch->number, status->absent = w.absent, status->worker = index;
  }
  (void)check_mode;
  (void)fail;
}
