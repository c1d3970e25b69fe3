/* UCX as the runtime sees it: what a small shared object, built against the header of UCX, offers. So the program of a
 * bundle runs where there is no UCX.
 *
 * A worker is a process's part of a job. One thread at a time calls functions. Those with a result of int32_t return 0,
 * or an error code of UCX, which is negative.
 */
#ifndef K2RT_TRANSPORT_UCX_UCXLIBRARY_H
#define K2RT_TRANSPORT_UCX_UCXLIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header. */
#define K2RT_UCX_LIBRARY_VERSION 1u

typedef struct k2rt_ucx_worker k2rt_ucx_worker;

typedef struct k2rt_ucx_library {
  /* A worker for a job of so many ranks, whose tags have the sender in the bits of sender_mask. */
  int32_t (*open)(int32_t ranks, uint64_t sender_mask, k2rt_ucx_worker **worker);
  /* Where others reach it; the worker's, until it is closed. */
  const void *(*address)(const k2rt_ucx_worker *worker, size_t *bytes);
  /* Once for each rank, itself too, before a message to it. */
  int32_t (*connect)(k2rt_ucx_worker *worker, int32_t peer, const void *address);
  /* Post a message in a slot, a small number that is the caller's choice. */
  int32_t (*send)(k2rt_ucx_worker *worker, int32_t slot, int32_t peer, uint64_t tag, const void *data, int64_t bytes);
  int32_t (*receive)(k2rt_ucx_worker *worker, int32_t slot, uint64_t tag, uint64_t mask, void *data, int64_t bytes);
  /* Makes progress where it is not done. */
  int32_t (*test)(k2rt_ucx_worker *worker, int32_t slot, int32_t *done);
  /* What has ended the connection to a rank; 0: nothing. */
  int32_t (*peer_error)(const k2rt_ucx_worker *worker, int32_t peer);
  /* Sends what is not sent yet, for at most so long, takes back what is still posted, ends connections. */
  void (*close)(k2rt_ucx_worker *worker, int32_t milliseconds);
  const char *(*error_text)(int32_t error);
} k2rt_ucx_library;

/* The one symbol that is exported: null for another version. */
#define K2RT_UCX_QUERY_NAME "k2rt_ucx_library_query"
typedef const k2rt_ucx_library *(*k2rt_ucx_query_fn)(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
