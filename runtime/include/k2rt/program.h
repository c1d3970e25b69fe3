/* What a compiled program and the runtime agree on: the structs of abi.def as C, and the functions between them.
 *
 * A program is a shared object with ONE exported symbol, k2c_program_query, and no writable globals: weights, cache,
 * arena and scratch all arrive through k2rt_ir_worker, so that ranks may be threads of one process. It is SPMD: every
 * worker runs the same step function; host code between launches runs on each worker, redundantly; a launch shares its
 * grid out in contiguous parts ([w*n/count, (w+1)*n/count) to worker w) and ends with a barrier; a nowait launch has
 * none, and the program vouches that what other workers still do is apart from what follows up to the next barrier.
 *
 * One page of the cache is 64 tokens of one layer of one plane:
 *   planes[p] + ((layer * pages + page) * 64 + slot) * width * bytes_per_element
 * with layer counted within the plane's pool and `pages`, `width` compile-time constants (manifest "cache").
 */
#ifndef K2RT_PROGRAM_H
#define K2RT_PROGRAM_H

#include "k2rt/numerics.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of abi.def or of this page. A program of another version is refused. */
#define K2RT_ABI_VERSION 21u
/* The name of the symbol a program exports. */
#define K2RT_PROGRAM_QUERY_NAME "k2c_program_query"
/* Cache groups of a program, at most. */
#define K2RT_MAX_CACHE_GROUPS 8
/* MLA segment forms (numerics N4). Models without MLA ignore them. */
#define K2RT_FORM_EXPANDED 0
#define K2RT_FORM_ABSORBED 1
/* What a site does: all token rows of the step to the next member of its axis, or from the one before; rows to each
 * member, as many as the program says, each with its place; the rows of the slices of a step to all that have one; the
 * rows of each slice of a step to who has it. */
#define K2RT_SEND 5
#define K2RT_RECEIVE 6
#define K2RT_ALL_TO_ALL_ROWS 9
#define K2RT_GATHER_SLICES 12
#define K2RT_SCATTER_SLICES 13
/* The ranks that have slices of the same step and parts of the same weights; those that divide a layer's experts; those
 * with the same place in each stage; those that divide experts on one node; those with the same place on each node; all
 * ranks of a stage. Where ranks next to each other have parts of the same experts (etp), those that divide a layer's
 * experts have the same part. */
#define K2RT_AXIS_TP 1
#define K2RT_AXIS_ETP 3
#define K2RT_AXIS_EP 4
#define K2RT_AXIS_PP 5
#define K2RT_AXIS_NODE 7
#define K2RT_AXIS_RAIL 8
#define K2RT_AXIS_STAGE 9
/* Launches of a GPU that run beside each other, at most. */
#define K2RT_GPU_BRANCHES 4
/* step.forced_experts: the first entry of a row that the router routes; an entry without expert. */
#define K2RT_ROUTE_FREE (-1)
#define K2RT_ROUTE_NONE (-2)

#define K2RT_TYPE_PTR void *
#define K2RT_TYPE_I32 int32_t
#define K2RT_TYPE_U32 uint32_t
#define K2RT_TYPE_I64 int64_t
#define K2RT_TYPE_U64 uint64_t
#define K2RT_TYPE_F32 float

/* clang-format off */
#define K2RT_STRUCT(name) typedef struct name {
#define K2RT_FIELD(name, type, field) K2RT_TYPE_##type field;
#define K2RT_END(name) } name;
#include "k2rt/abi.def"
/* clang-format on */

/* What a kernel returns that is not 0: an id, an expert or a position out of range; rows of an expert whose address in
 * its table is null (worker->absent is that entry). */
#define K2RT_STATUS_OUT_OF_RANGE 1
#define K2RT_STATUS_ABSENT_EXPERT 2

/* A kernel: processes grid items [worker->begin, worker->end), sets worker->variant; linears of routed experts share
 * panels by worker->index of worker->count. args: a pointer an operand, then a result. 0, or what stops the step. */
typedef int32_t (*k2rt_ir_kernel_fn)(k2rt_ir_worker *worker, void *const *args);

/* A step entry: called on every worker. Returns 0, or what a launch or barrier returned. */
typedef int32_t (*k2rt_ir_step_fn)(k2rt_ir_worker *worker);

/* api->launch, api->launch_nowait. kernel_id indexes kernel_names. Every worker gets the same result; nonzero: return
 * it at once. A nowait launch returns 0: what failed in it stops the step at the next barrier. A step ends closed. */
typedef int32_t (*k2rt_ir_launch_fn)(k2rt_ir_worker *worker, int32_t kernel_id, k2rt_ir_kernel_fn kernel, int64_t grid,
                                     void *const *args);

/* api->enqueue: launches kernel `kernel_id` with `count` arguments, behind all that was enqueued before; a nowait
 * launch and those behind it, up to and with the next that is not, may run at once in any order. `layer` is the
 * model's, -1: none. One worker records a step once for all steps of at most as many rows, so a program of a GPU reads
 * no count of its step. An argument that is worker->step becomes the device's. Returns 0, or what ends the recording.
 */
typedef int32_t (*k2rt_ir_enqueue_fn)(k2rt_ir_worker *worker, int32_t kernel_id, const k2rt_ir_grid *grid,
                                      int64_t layer, void *const *args, int32_t count, int32_t nowait);

/* api->barrier and api->sample. sample does not end with a barrier: the end of the step is one. On a GPU it is for rows
 * whose temperature is above 0: kernels leave the greedy choice of every row in step.samples. */
typedef int32_t (*k2rt_ir_barrier_fn)(k2rt_ir_worker *worker);

/* api->collective_start. Every worker calls it, behind a barrier that closes what writes the buffers; `layer` is the
 * model's, -1: none. buffers of a send or a receive: the token rows of the step. Of the others: the rows to send; const
 * int64 [2 n] of the n members: rows to each, then their first row; the rows that come; int64 [2 n]: rows from each,
 * then their first row. Where the site has a quota, the runtime fills the last (quota each, member * quota), and after
 * the wait it says what came. Returns 0: failures show at the wait. */
typedef int32_t (*k2rt_ir_collective_start_fn)(k2rt_ir_worker *worker, int32_t site, int64_t layer,
                                               void *const *buffers);

/* api->collective_wait: one for each start, a barrier like that of a launch. */
typedef int32_t (*k2rt_ir_collective_wait_fn)(k2rt_ir_worker *worker, int32_t site);

/* K2RT_PROGRAM_QUERY_NAME: the program's description, or null when it was compiled for another abi. */
typedef const k2rt_ir_program *(*k2rt_ir_query_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
