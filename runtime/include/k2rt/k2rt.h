/* The runtime for its users: open a bundle, create a session, add sequences, step until they are done.
 *
 * A bundle is the folder `k2c compile` wrote. A session owns all memory of a run, allocated once when it is created.
 * Each k2rt_step advances every admitted sequence: prompt chunks and generated tokens go together in one ragged batch.
 * The bits of a sequence's tokens do not depend on the other sequences, on threads or on the chunk (numerics N0).
 *
 * Nothing here throws, prints, aborts or exits. A call that fails returns a code and, when `status` is not null, fills
 * it with the place, the message and the remedy. A session is used by one thread at a time.
 */
#ifndef K2RT_K2RT_H
#define K2RT_K2RT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum k2rt_code {
  K2RT_OK = 0,
  K2RT_INVALID_ARGUMENT = 1, /* the caller's value: place names the argument */
  K2RT_INVALID_BUNDLE = 2,   /* a file of the bundle is missing, damaged or of another version */
  K2RT_UNSUPPORTED = 3,      /* this machine or this build lacks what the bundle needs */
  K2RT_OUT_OF_MEMORY = 4,    /* the certificate does not fit what the machine or container allows */
  K2RT_KERNEL_FAILED = 5,    /* a kernel of the program reported failure: place names it */
  K2RT_INTERRUPTED = 6,      /* k2rt_interrupt was called */
  K2RT_SYSTEM = 7,           /* the operating system refused something it should not */
  K2RT_PEER_FAILED = 8,      /* another rank, or what carries messages to it, failed: place names it */
  K2RT_DEADLINE = 9,         /* a wait for other ranks took too long: the message names them */
  K2RT_DEVICE_FAILED = 10,   /* a GPU or its driver is not there, is another one, or failed: place names the call */
  K2RT_CODE_MAX = 0x7fffffff /* no code: with it any number from 0 on is a value of this type in C++, too */
} k2rt_code;

/* Why a call failed. Texts end with a zero byte and are cut when too long; remedy may be empty. */
typedef struct k2rt_status {
  k2rt_code code;
  char place[256];
  char message[512];
  char remedy[256];
} k2rt_status;

typedef struct k2rt_bundle k2rt_bundle;
typedef struct k2rt_session k2rt_session;

/* A short lower-case name of the code, for logs. Never null. */
const char *k2rt_code_name(k2rt_code code);

/* Reads and checks the bundle in folder `dir` and maps its weights. The caller closes *bundle. */
k2rt_code k2rt_open(const char *dir, k2rt_bundle **bundle, k2rt_status *status);
/* Closes a bundle that has no session left. Null is allowed. */
void k2rt_close(k2rt_bundle *bundle);

typedef struct k2rt_session_options {
  int32_t threads;        /* 0: the processors this process may use */
  int64_t chunk;          /* most prompt tokens of one sequence in one step; 0: as many as fit */
  const char *trace_file; /* Perfetto JSON, written when the session ends; or null */
  const char *driver;     /* of a bundle for a GPU: its driver's library; null: libcuda.so.1 */
  int32_t device;         /* of a bundle for a GPU: its number in the driver */
} k2rt_session_options;

/* Allocates everything a run needs, and reads and hashes all weights. `options` may be null. The caller destroys
 * *session before closing the bundle. A file of the bundle that becomes shorter afterwards is a SIGBUS, as for every
 * mapped file: `run` names it, here the signal is the caller's. */
k2rt_code k2rt_session_create(k2rt_bundle *bundle, const k2rt_session_options *options, k2rt_session **session,
                              k2rt_status *status);
/* Null is allowed. */
void k2rt_session_destroy(k2rt_session *session);

typedef struct k2rt_sampling {
  float temperature; /* 0: greedy */
  float top_p;       /* 1: off */
  float min_p;       /* 0: off */
  int32_t top_k;     /* 0: off */
  uint64_t seed;
  int32_t ignore_eos; /* nonzero: generate exactly max_new tokens */
  int32_t choice;     /* 0, or which of several continuations of one prompt: at least 0 */
} k2rt_sampling;

/* Queues a sequence of n >= 1 prompt ids that generates up to max_new >= 1 tokens. `sampling` null: greedy. What is
 * drawn depends on the prompt, `sampling` and nothing else: the same prompt, seed and choice draw the same tokens.
 * *sequence is its number, counted from 0 in this session. */
k2rt_code k2rt_sequence_add(k2rt_session *session, const int32_t *ids, int64_t n, int64_t max_new,
                            const k2rt_sampling *sampling, int64_t *sequence, k2rt_status *status);

/* Runs one step over the admitted sequences; on a GPU it may begin one and end the one before, whose tokens are there
 * then. *active counts the sequences not yet finished after it. */
k2rt_code k2rt_step(k2rt_session *session, int64_t *active, k2rt_status *status);

/* New tokens of a sequence so far: copies at most `capacity`, *count is how many there are. *finished: 0 running,
 * 1 max_new reached, 2 an end-of-sequence id (the last one returned). */
k2rt_code k2rt_sequence_read(k2rt_session *session, int64_t sequence, int32_t *ids, int64_t capacity, int64_t *count,
                             int32_t *finished, k2rt_status *status);

/* Makes a running or later k2rt_step return K2RT_INTERRUPTED. May be called from any thread or a signal handler. */
void k2rt_interrupt(k2rt_session *session);

#ifdef __cplusplus
}
#endif
#endif
