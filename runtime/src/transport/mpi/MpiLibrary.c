// The shared object of one MPI library: Isend, Irecv and Test, and nothing that waits.
#include "transport/mpi/MpiLibrary.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Request *requests;
static int32_t capacity;

static int32_t start(int32_t *rank, int32_t *ranks) {
  int provided;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_size(MPI_COMM_WORLD, ranks);
  return error != MPI_SUCCESS ? error : provided < MPI_THREAD_SERIALIZED ? MPI_ERR_OTHER : 0;
}

/* The handle of a slot; null: the system refuses memory. */
static MPI_Request *request_of(int32_t slot) {
  if (slot >= capacity) {
    const int32_t wanted = 2 * slot + 64;
    MPI_Request *larger = realloc(requests, (size_t)wanted * sizeof *larger);
    if (!larger)
      return NULL;
    requests = larger;
    while (capacity < wanted)
      requests[capacity++] = MPI_REQUEST_NULL;
  }
  return &requests[slot];
}

static int32_t post_send(int32_t slot, int32_t peer, int32_t tag, const void *data, int32_t bytes) {
  MPI_Request *request = request_of(slot);
  return request ? MPI_Isend(data, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, request) : MPI_ERR_NO_MEM;
}

static int32_t post_receive(int32_t slot, int32_t peer, int32_t tag, void *data, int32_t bytes) {
  MPI_Request *request = request_of(slot);
  const int source = peer < 0 ? MPI_ANY_SOURCE : peer;
  return request ? MPI_Irecv(data, bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, request) : MPI_ERR_NO_MEM;
}

static int32_t test_slot(int32_t slot, int32_t *done) {
  int flag = 0;
  const int error = MPI_Test(&requests[slot], &flag, MPI_STATUS_IGNORE);
  *done = flag;
  return error;
}

/* What is still posted, as a receive of whoever sends next, is taken back: MPI_Finalize may wait for it. */
static int32_t finish(void) {
  for (int32_t slot = 0; slot < capacity; ++slot)
    if (requests[slot] != MPI_REQUEST_NULL) {
      MPI_Cancel(&requests[slot]);
      MPI_Request_free(&requests[slot]);
    }
  return MPI_Finalize();
}

static void end_job(int32_t exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

static void error_text(int32_t error, char *text, int32_t bytes) {
  char whole[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(error, whole, &length);
  snprintf(text, (size_t)bytes, "%s", whole);
}

static const k2rt_mpi_library library = {start, post_send, post_receive, test_slot, finish, end_job, error_text};

__attribute__((visibility("default"))) const k2rt_mpi_library *k2rt_mpi_library_query(uint32_t version) {
  return version == K2RT_MPI_LIBRARY_VERSION ? &library : NULL;
}
