/* An MPI library as the runtime sees it: what a small shared object, built against the header of that library, offers.
 *
 * MPI has no binary interface of its own: handles are pointers in Open MPI and numbers in MPICH. So MpiLibrary.c is
 * compiled once for each that is installed, and what started the process decides which one is opened. One thread at
 * a time calls functions. Those with a result return 0, or an error code of the library.
 */
#ifndef K2RT_TRANSPORT_MPI_MPILIBRARY_H
#define K2RT_TRANSPORT_MPI_MPILIBRARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header. */
#define K2RT_MPI_LIBRARY_VERSION 1u

typedef struct k2rt_mpi_library {
  int32_t (*start)(int32_t *rank, int32_t *ranks);
  /* Post a message in a slot, a small number that is the caller's choice. peer -1: from any rank. */
  int32_t (*send)(int32_t slot, int32_t peer, int32_t tag, const void *data, int32_t bytes);
  int32_t (*receive)(int32_t slot, int32_t peer, int32_t tag, void *data, int32_t bytes);
  int32_t (*test)(int32_t slot, int32_t *done);
  int32_t (*finish)(void);
  void (*end_job)(int32_t exit_code);
  void (*error_text)(int32_t error, char *text, int32_t bytes);
} k2rt_mpi_library;

/* The one symbol that is exported: null for another version. */
#define K2RT_MPI_QUERY_NAME "k2rt_mpi_library_query"
typedef const k2rt_mpi_library *(*k2rt_mpi_query_fn)(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
