// The shared object over UCX: tagged messages between workers, and nothing that waits but the end, which has a bound.
#include "transport/ucx/UcxLibrary.h"
#include <stdlib.h>
#include <time.h>
#include <ucp/api/ucp.h>

struct peer {
  ucp_ep_h endpoint;
  ucs_status_t status;
};

struct k2rt_ucx_worker {
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_address_t *address;
  size_t address_bytes;
  struct peer *peers;
  int32_t ranks;
  void **requests; // by slot; null: done
  int32_t capacity;
};

static void close_worker(k2rt_ucx_worker *worker, int32_t milliseconds);

static int32_t init_context(k2rt_ucx_worker *worker, uint64_t sender_mask) {
  const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK |
                                             UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                               .features = UCP_FEATURE_TAG,
                               .tag_sender_mask = sender_mask,
                               .estimated_num_eps = (size_t)worker->ranks};
  return ucp_init(&params, NULL, &worker->context);
}

static int32_t open_worker(int32_t ranks, uint64_t sender_mask, k2rt_ucx_worker **opened) {
  k2rt_ucx_worker *worker = calloc(1, sizeof *worker);
  struct peer *peers = calloc((size_t)ranks, sizeof *peers);
  if (!worker || !peers) {
    free(worker);
    free(peers);
    return UCS_ERR_NO_MEMORY;
  }
  worker->peers = peers;
  worker->ranks = ranks;
  const ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                      .thread_mode = UCS_THREAD_MODE_SINGLE};
  int32_t status = init_context(worker, sender_mask);
  if (status == UCS_OK)
    status = ucp_worker_create(worker->context, &params, &worker->worker);
  if (status == UCS_OK)
    status = ucp_worker_get_address(worker->worker, &worker->address, &worker->address_bytes);
  if (status == UCS_OK)
    *opened = worker;
  else
    close_worker(worker, 0);
  return status;
}

static const void *address_of(const k2rt_ucx_worker *worker, size_t *bytes) {
  *bytes = worker->address_bytes;
  return worker->address;
}

static void on_peer_error(void *peer, ucp_ep_h endpoint, ucs_status_t status) {
  (void)endpoint;
  ((struct peer *)peer)->status = status;
}

static int32_t connect_peer(k2rt_ucx_worker *worker, int32_t peer, const void *address) {
  const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                  .address = address,
                                  .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                  .err_handler = {on_peer_error, &worker->peers[peer]}};
  return ucp_ep_create(worker->worker, &params, &worker->peers[peer].endpoint);
}

/* Where the request of a slot is kept; null: the system refuses memory. */
static void **request_of(k2rt_ucx_worker *worker, int32_t slot) {
  if (slot >= worker->capacity) {
    const int32_t wanted = 2 * slot + 64;
    void **larger = realloc(worker->requests, (size_t)wanted * sizeof *larger);
    if (!larger)
      return NULL;
    worker->requests = larger;
    while (worker->capacity < wanted)
      worker->requests[worker->capacity++] = NULL;
  }
  return &worker->requests[slot];
}

static int32_t keep(void **request, ucs_status_ptr_t posted) {
  if (UCS_PTR_IS_ERR(posted))
    return UCS_PTR_STATUS(posted);
  *request = posted;
  return UCS_OK;
}

static int32_t post_send(k2rt_ucx_worker *worker, int32_t slot, int32_t peer, uint64_t tag, const void *data,
                         int64_t bytes) {
  const ucp_request_param_t plain = {.op_attr_mask = 0};
  void **request = request_of(worker, slot);
  if (!request)
    return UCS_ERR_NO_MEMORY;
  return keep(request, ucp_tag_send_nbx(worker->peers[peer].endpoint, data, (size_t)bytes, tag, &plain));
}

static int32_t post_receive(k2rt_ucx_worker *worker, int32_t slot, uint64_t tag, uint64_t mask, void *data,
                            int64_t bytes) {
  const ucp_request_param_t plain = {.op_attr_mask = 0};
  void **request = request_of(worker, slot);
  if (!request)
    return UCS_ERR_NO_MEMORY;
  return keep(request, ucp_tag_recv_nbx(worker->worker, data, (size_t)bytes, tag, mask, &plain));
}

/* A step of progress moves some kilobytes over TCP: what is ready goes before the thread may sleep. */
enum { most_steps = 32 };

static int32_t test_slot(k2rt_ucx_worker *worker, int32_t slot, int32_t *done) {
  void **request = &worker->requests[slot];
  for (int32_t i = 0; i < most_steps && *request && ucp_request_check_status(*request) == UCS_INPROGRESS; ++i)
    if (ucp_worker_progress(worker->worker) == 0)
      break;
  const ucs_status_t status = *request ? ucp_request_check_status(*request) : UCS_OK;
  *done = status != UCS_INPROGRESS;
  if (!*done)
    return UCS_OK;
  if (*request)
    ucp_request_free(*request);
  *request = NULL;
  return status;
}

static int32_t peer_error(const k2rt_ucx_worker *worker, int32_t peer) { return worker->peers[peer].status; }

static int64_t milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Frees a request once it is done; 0: it is not, by that time. */
static int finish_request(ucp_worker_h worker, ucs_status_ptr_t request, int64_t until) {
  if (!UCS_PTR_IS_PTR(request))
    return 1;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) {
    if (milliseconds_now() >= until)
      return 0;
    if (ucp_worker_progress(worker) == 0) {
      const struct timespec nap = {0, 20000};
      nanosleep(&nap, NULL);
    }
  }
  ucp_request_free(request);
  return 1;
}

/* Sends what stands in the buffers of connections: peers may need to take part, so all of them are asked at once. */
static void flush(k2rt_ucx_worker *worker, int64_t until) {
  const ucp_request_param_t plain = {.op_attr_mask = 0};
  ucs_status_ptr_t *flushes = calloc((size_t)worker->ranks, sizeof *flushes);
  if (!flushes)
    return;
  for (int32_t peer = 0; peer < worker->ranks; ++peer)
    if (worker->peers[peer].endpoint && worker->peers[peer].status == UCS_OK)
      flushes[peer] = ucp_ep_flush_nbx(worker->peers[peer].endpoint, &plain);
  for (int32_t peer = 0; peer < worker->ranks; ++peer)
    finish_request(worker->worker, flushes[peer], until); // one that is not done ends with its connection
  free(flushes);
}

/* 0: something did not end by that time. */
static int disconnect(k2rt_ucx_worker *worker, int64_t until) {
  const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
  int have_all_ended = 1;
  for (int32_t slot = 0; slot < worker->capacity; ++slot)
    if (worker->requests[slot])
      ucp_request_cancel(worker->worker, worker->requests[slot]);
  for (int32_t peer = 0; peer < worker->ranks; ++peer)
    if (worker->peers[peer].endpoint)
      have_all_ended &= finish_request(worker->worker, ucp_ep_close_nbx(worker->peers[peer].endpoint, &force), until);
  for (int32_t slot = 0; slot < worker->capacity; ++slot)
    have_all_ended &= finish_request(worker->worker, worker->requests[slot], until);
  return have_all_ended;
}

static void close_worker(k2rt_ucx_worker *worker, int32_t milliseconds) {
  const int64_t forced_ms = 500;
  if (worker->worker) {
    flush(worker, milliseconds_now() + milliseconds);
    if (!disconnect(worker, milliseconds_now() + forced_ms))
      return; // what is under way may still use all of it
    if (worker->address)
      ucp_worker_release_address(worker->worker, worker->address);
    ucp_worker_destroy(worker->worker);
  }
  if (worker->context)
    ucp_cleanup(worker->context);
  free(worker->requests);
  free(worker->peers);
  free(worker);
}

static const char *error_text(int32_t error) { return ucs_status_string((ucs_status_t)error); }

static const k2rt_ucx_library library = {open_worker, address_of, connect_peer, post_send, post_receive,
                                         test_slot,   peer_error, close_worker, error_text};

__attribute__((visibility("default"))) const k2rt_ucx_library *k2rt_ucx_library_query(uint32_t version) {
  return version == K2RT_UCX_LIBRARY_VERSION ? &library : NULL;
}
