// An MPI library for tests, of one rank that sends to itself: messages of one tag come in order, a receive is done when
// its message was sent. FAKE_ERROR_OF names the function that fails, FAKE_HANG that which does not return for a while.
#include "transport/mpi/MpiLibrary.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef FAKE_ERROR_OF
#define FAKE_ERROR_OF ""
#endif
#ifndef FAKE_HANG
#define FAKE_HANG ""
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION K2RT_MPI_LIBRARY_VERSION
#endif

enum { maxSlots = 64 };
static struct {
  const void *sent;
  void *wanted;
  int32_t tag, bytes, done;
} slots[maxSlots];

static int32_t error_of(const char *function) {
  if (strcmp(FAKE_HANG, function) == 0)
    sleep(10);
  return strcmp(FAKE_ERROR_OF, function) == 0 ? 7 : 0;
}

static int32_t start(int32_t *rank, int32_t *ranks) {
  *rank = 0;
  *ranks = 1;
  return error_of("start");
}

static int32_t post(int32_t slot, const void *sent, void *wanted, int32_t tag, int32_t bytes) {
  slots[slot].sent = sent;
  slots[slot].wanted = wanted;
  slots[slot].tag = tag;
  slots[slot].bytes = bytes;
  slots[slot].done = 0;
  for (int32_t i = 0; i < maxSlots; ++i) {
    const int isOther = sent ? slots[i].wanted != NULL : slots[i].sent != NULL;
    if (!isOther || slots[i].done || slots[i].tag != tag)
      continue;
    const int32_t from = sent ? slot : i, to = sent ? i : slot;
    memcpy(slots[to].wanted, slots[from].sent, (size_t)slots[from].bytes);
    slots[from].done = slots[to].done = 1;
    break;
  }
  return 0;
}

static int32_t send(int32_t slot, int32_t peer, int32_t tag, const void *data, int32_t bytes) {
  return error_of("send") ? 7 : post(slot, data, NULL, tag, bytes);
}

static int32_t receive(int32_t slot, int32_t peer, int32_t tag, void *data, int32_t bytes) {
  return error_of("receive") ? 7 : post(slot, NULL, data, tag, bytes);
}

static int32_t test(int32_t slot, int32_t *done) {
  *done = slots[slot].done;
  return error_of("test");
}

static int32_t finish(void) { return error_of("finish"); }

static void end_job(int32_t exit_code) {}

static void error_text(int32_t error, char *text, int32_t bytes) { snprintf(text, (size_t)bytes, "error %d", error); }

static const k2rt_mpi_library library = {start, send, receive, test, finish, end_job, error_text};

__attribute__((visibility("default"))) const k2rt_mpi_library *k2rt_mpi_library_query(uint32_t version) {
  return version == FAKE_VERSION ? &library : NULL;
}
