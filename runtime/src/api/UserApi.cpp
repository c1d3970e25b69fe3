// k2rt.h over the bundle, engine and scheduler: the C border, where no exception passes.
//
// Each function runs its work in guarded(), which turns a Status, or whatever is thrown, into a k2rt_code and fills
// the user's k2rt_status: place, message and remedy are cut to the size of their fields between two characters of
// UTF-8, never within one. A null status is allowed. Pointers that must not be null are checked and named as the
// argument is.
//
// A session pulls, where the scheduler pushes: tokens are recorded by sequence number as steps give them, and stay
// readable after the sequence has ended and its cache has gone to another. k2rt_interrupt is the exception to
// guarded(): it may be called from a signal handler, so it does nothing but set what the engine looks at.
#include "base/Utf8.h"
#include "device/OpenEngine.h"
#include "engine/Scheduler.h"
#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

using namespace k2c;
using namespace k2c::runtime;

struct k2rt_bundle {
  Bundle bundle;
};

struct k2rt_session {
  struct Output {
    std::vector<int32_t> ids;
    Finish finish = Finish::running;
  };
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<Output> outputs; ///< by sequence number
};

static void copyText(std::string_view from, char *to, size_t capacity) {
  const std::string text = printable(from);
  size_t length = text.size();
  if (length >= capacity)
    for (length = capacity - 1; length > 0 && (uint8_t(text[length]) & 0xC0) == 0x80;)
      --length;
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

/// Copies `error` into the users' struct, cutting what is too long between two characters. Null `to` is allowed.
/// Returns the code.
static k2rt_code exportError(const Error &error, k2rt_status *to) {
  if (to) {
    to->code = error.code;
    copyText(error.where, to->place, sizeof to->place);
    copyText(error.message, to->message, sizeof to->message);
    copyText(error.remedy, to->remedy, sizeof to->remedy);
  }
  return error.code;
}

/// Calls `body`, which returns a Status, and exports what it says or throws.
template <class Body> static k2rt_code guarded(k2rt_status *status, Body body) {
  try {
    Status done = body();
    if (done)
      return exportError(Error{K2RT_OK, "", "", ""}, status);
    return exportError(done.error(), status);
  } catch (const std::bad_alloc &) {
    return exportError(Error{K2RT_OUT_OF_MEMORY, "k2rt", "the system refuses memory", ""}, status);
  } catch (...) {
    return exportError(Error{K2RT_SYSTEM, "k2rt", "unexpected failure", ""}, status);
  }
}

static Status missing(const char *argument) { return Error{argument, "is null", ""}; }

extern "C" const char *k2rt_code_name(k2rt_code code) {
  switch (code) {
  case K2RT_OK:
    return "ok";
  case K2RT_INVALID_ARGUMENT:
    return "invalid argument";
  case K2RT_INVALID_BUNDLE:
    return "invalid bundle";
  case K2RT_UNSUPPORTED:
    return "unsupported";
  case K2RT_OUT_OF_MEMORY:
    return "out of memory";
  case K2RT_KERNEL_FAILED:
    return "kernel failed";
  case K2RT_INTERRUPTED:
    return "interrupted";
  case K2RT_SYSTEM:
    return "system";
  case K2RT_PEER_FAILED:
    return "peer failed";
  case K2RT_DEADLINE:
    return "deadline";
  case K2RT_DEVICE_FAILED:
    return "device failed";
  case K2RT_CODE_MAX:
    break;
  }
  return "unknown";
}

extern "C" k2rt_code k2rt_open(const char *dir, k2rt_bundle **bundle, k2rt_status *status) {
  return guarded(status, [&]() -> Status {
    if (!dir || !bundle)
      return missing(dir ? "bundle" : "dir");
    Expected<Bundle> opened = Bundle::open(dir);
    if (!opened)
      return opened.takeError();
    *bundle = new k2rt_bundle{std::move(*opened)};
    return {};
  });
}

extern "C" void k2rt_close(k2rt_bundle *bundle) { delete bundle; }

static StepEvents recordInto(k2rt_session &target) {
  StepEvents events;
  events.token = [&target](const Sequence &sequence, int32_t id, bool) {
    target.outputs[sequence.number].ids.push_back(id);
    return true;
  };
  events.finished = [&target](const Sequence &sequence) { target.outputs[sequence.number].finish = sequence.finish; };
  return events;
}

extern "C" k2rt_code k2rt_session_create(k2rt_bundle *bundle, const k2rt_session_options *options,
                                         k2rt_session **session, k2rt_status *status) {
  return guarded(status, [&]() -> Status {
    if (!bundle || !session)
      return missing(bundle ? "session" : "bundle");
    DeviceOptions devices;
    EngineOptions chosen;
    if (options) {
      devices.onCpu.threads = options->threads;
      devices.driver = options->driver ? options->driver : "";
      if (options->device != 0)
        devices.devices = {options->device};
      chosen.chunk = options->chunk;
      chosen.traceFile = options->trace_file ? options->trace_file : "";
    }
    Expected<OpenedEngine> created = openEngine(bundle->bundle, devices, chosen);
    if (!created)
      return created.takeError();
    auto holder = std::make_unique<k2rt_session>();
    holder->engine = std::move(created->engine);
    holder->scheduler = std::make_unique<Scheduler>(*holder->engine, recordInto(*holder));
    *session = holder.release();
    return {};
  });
}

extern "C" void k2rt_session_destroy(k2rt_session *session) {
  if (session)
    guarded(nullptr, [&] { return session->engine->finish(); });
  delete session;
}

extern "C" k2rt_code k2rt_sequence_add(k2rt_session *session, const int32_t *ids, int64_t n, int64_t max_new,
                                       const k2rt_sampling *sampling, int64_t *sequence, k2rt_status *status) {
  return guarded(status, [&]() -> Status {
    if (!session || !ids)
      return missing(session ? "ids" : "session");
    if (n < 1 || max_new < 1)
      return Error{n < 1 ? "n" : "max_new", "must be at least 1", ""};
    Request request;
    request.prompt.assign(ids, ids + n);
    request.maxNew = max_new;
    if (sampling) {
      if (sampling->choice < 0)
        return Error{"sampling.choice", "is " + std::to_string(sampling->choice) + ", must be at least 0", ""};
      request.sampling = {sampling->temperature, sampling->top_p,  sampling->min_p, sampling->top_k,
                          sampling->seed,        sampling->choice, /*position=*/0};
      request.ignoreEos = sampling->ignore_eos != 0;
    }
    Expected<int64_t> number = session->scheduler->add(std::move(request));
    if (!number)
      return number.takeError();
    session->outputs.emplace_back();
    if (sequence)
      *sequence = *number;
    return {};
  });
}

extern "C" k2rt_code k2rt_step(k2rt_session *session, int64_t *active, k2rt_status *status) {
  return guarded(status, [&]() -> Status {
    if (!session)
      return missing("session");
    Expected<bool> stepped = session->scheduler->step();
    if (!stepped)
      return stepped.takeError();
    if (active)
      *active = session->scheduler->unfinished();
    return {};
  });
}

extern "C" k2rt_code k2rt_sequence_read(k2rt_session *session, int64_t sequence, int32_t *ids, int64_t capacity,
                                        int64_t *count, int32_t *finished, k2rt_status *status) {
  return guarded(status, [&]() -> Status {
    if (!session || (capacity > 0 && !ids))
      return missing(session ? "ids" : "session");
    if (sequence < 0 || sequence >= static_cast<int64_t>(session->outputs.size()))
      return Error{"sequence",
                   "is " + std::to_string(sequence) + ", " + std::to_string(session->outputs.size()) + " were added",
                   ""};
    const k2rt_session::Output &output = session->outputs[sequence];
    const int64_t have = static_cast<int64_t>(output.ids.size());
    if (capacity > 0)
      std::copy_n(output.ids.begin(), std::min(have, capacity), ids);
    if (count)
      *count = have;
    if (finished)
      *finished = static_cast<int32_t>(output.finish);
    return {};
  });
}

extern "C" void k2rt_interrupt(k2rt_session *session) { session->engine->interrupt(); }
