// A UCX for tests, of one rank that sends to itself: messages of one tag come in order, a receive is done when its
// message was sent. FAKE_ERROR_OF names the function that fails.
#include "transport/ucx/UcxLibrary.h"
#include <string.h>

#ifndef FAKE_ERROR_OF
#define FAKE_ERROR_OF ""
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION K2RT_UCX_LIBRARY_VERSION
#endif

enum { maxSlots = 64 };
struct k2rt_ucx_worker {
  struct {
    const void *sent;
    void *wanted;
    uint64_t tag, mask;
    int64_t bytes;
    int32_t done;
  } slots[maxSlots];
};
static struct k2rt_ucx_worker only;

static int32_t error_of(const char *function) { return strcmp(FAKE_ERROR_OF, function) == 0 ? -7 : 0; }

static int32_t open_worker(int32_t ranks, uint64_t sender_mask, k2rt_ucx_worker **worker) {
  memset(&only, 0, sizeof only);
  *worker = &only;
  return error_of("open");
}

static const void *address_of(const k2rt_ucx_worker *worker, size_t *bytes) {
  *bytes = 4;
  return "here";
}

static int32_t connect_peer(k2rt_ucx_worker *worker, int32_t peer, const void *address) {
  return strcmp(address, "here") != 0 ? -8 : error_of("connect");
}

static int32_t post(k2rt_ucx_worker *worker, int32_t slot, const void *sent, void *wanted, uint64_t tag, uint64_t mask,
                    int64_t bytes) {
  worker->slots[slot].sent = sent;
  worker->slots[slot].wanted = wanted;
  worker->slots[slot].tag = tag;
  worker->slots[slot].mask = mask;
  worker->slots[slot].bytes = bytes;
  worker->slots[slot].done = 0;
  for (int32_t i = 0; i < maxSlots; ++i) {
    const int32_t from = sent ? slot : i, to = sent ? i : slot;
    if (!worker->slots[from].sent || !worker->slots[to].wanted || worker->slots[i].done ||
        ((worker->slots[from].tag ^ worker->slots[to].tag) & worker->slots[to].mask) != 0)
      continue;
    memcpy(worker->slots[to].wanted, worker->slots[from].sent, (size_t)worker->slots[from].bytes);
    worker->slots[from].done = worker->slots[to].done = 1;
    break;
  }
  return 0;
}

static int32_t send(k2rt_ucx_worker *worker, int32_t slot, int32_t peer, uint64_t tag, const void *data,
                    int64_t bytes) {
  return error_of("send") ? -7 : post(worker, slot, data, NULL, tag, 0, bytes);
}

static int32_t receive(k2rt_ucx_worker *worker, int32_t slot, uint64_t tag, uint64_t mask, void *data, int64_t bytes) {
  return error_of("receive") ? -7 : post(worker, slot, NULL, data, tag, mask, bytes);
}

static int32_t test(k2rt_ucx_worker *worker, int32_t slot, int32_t *done) {
  *done = error_of("peer") ? 0 : worker->slots[slot].done;
  return error_of("test");
}

static int32_t peer_error(const k2rt_ucx_worker *worker, int32_t peer) { return error_of("peer"); }

static void close_worker(k2rt_ucx_worker *worker, int32_t milliseconds) {}

static const char *error_text(int32_t error) { return error == -7 ? "error 7" : "another error"; }

static const k2rt_ucx_library library = {open_worker, address_of, connect_peer, send,      receive,
                                         test,        peer_error, close_worker, error_text};

__attribute__((visibility("default"))) const k2rt_ucx_library *k2rt_ucx_library_query(uint32_t version) {
  return version == FAKE_VERSION ? &library : NULL;
}
