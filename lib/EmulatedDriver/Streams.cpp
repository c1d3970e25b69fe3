//===- Streams.cpp - Streams and events -----------------------------------===//
//
// A stream is what its next operation comes behind; waiting for an event adds what the event was recorded behind, and
// is no operation of its own. In a capture the same is said of the nodes of its graph, and waiting for an event that
// was recorded there makes a stream a part of the capture. An event that is recorded as a node is what each launch of
// the graph records.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"

#include <algorithm>

using namespace k2c::emulated;

namespace {

template <class T> void merge(std::vector<T> &into, const std::vector<T> &added) {
  for (const T value : added)
    if (std::find(into.begin(), into.end(), value) == into.end())
      into.push_back(value);
}

CUresult wait(Driver &driver, Stream &stream, const Event &event) {
  if (event.records == 0)
    return CUDA_SUCCESS;
  if (stream.capture == 0 && event.capture == 0) {
    stream.tail.erase(std::remove_if(stream.tail.begin(), stream.tail.end(),
                                     [&](Queue::OperationId id) { return driver.queue.isDone(id); }),
                      stream.tail.end());
    merge(stream.tail, {event.operation});
    return CUDA_SUCCESS;
  }
  const Capture *capture = driver.captures.find(event.capture);
  if (stream.capture == 0) {
    if (!capture)
      return CUDA_ERROR_CAPTURED_EVENT;
    if (capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream.capture = event.capture;
    stream.nodes = event.nodes;
    return CUDA_SUCCESS;
  }
  if (driver.captures.find(stream.capture)->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (event.capture == stream.capture) {
    merge(stream.nodes, event.nodes);
    return CUDA_SUCCESS;
  }
  if (!capture)
    return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  driver.invalidate(event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
}

CUresult record(Driver &driver, uint64_t id, Event &event, Stream &stream) {
  if (event.context != stream.context)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream.capture != 0 && driver.captures.find(stream.capture)->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  ++event.records;
  event.capture = stream.capture;
  event.nodes = stream.nodes;
  if (stream.capture == 0) {
    driver.enqueue(stream, {stream.context, Mark{id, event.records}});
    event.operation = stream.tail.front();
  }
  return CUDA_SUCCESS;
}

/// For calls that ask what an event's work has come to.
template <class Body> CUresult enterEvent(Entry entry, CUevent handle, Body body) {
  return enter(entry, [&](Driver &driver) {
    CUresult error = CUDA_SUCCESS;
    Event *event = driver.event(handle, error);
    if (!event)
      return error;
    if (event->capture != 0)
      return driver.invalidate(event->capture, CUDA_ERROR_CAPTURED_EVENT);
    if (error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    return body(driver, *event);
  });
}

} // namespace

CUresult cuStreamCreate(CUstream *handle, unsigned flags) {
  return enterContext(Entry::cuStreamCreate, [&](Driver &driver, Context &) {
    if (!handle || flags > CU_STREAM_NON_BLOCKING)
      return CUDA_ERROR_INVALID_VALUE;
    Stream made;
    made.context = currentContext;
    *handle = handleOf<CUstream>(driver.streams.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return enter(Entry::cuStreamDestroy_v2, [&](Driver &driver) {
    const Stream *stream = driver.streams.find(idOf(handle));
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    const CUresult error = driver.errorOf(stream->context);
    driver.invalidate(stream->capture, CUDA_SUCCESS);
    if (Capture *capture = driver.captures.find(stream->capture); capture && capture->origin == idOf(handle))
      driver.endCapture(stream->capture);
    driver.streams.erase(idOf(handle));
    return error;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return enterStream(Entry::cuStreamQuery, handle, [&](Driver &driver, Stream &stream) {
    if (stream.capture != 0)
      return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    driver.queue.goOn();
    const CUresult error = driver.errorOf(stream.context);
    return error == CUDA_SUCCESS && !driver.queue.areDone(stream.tail) ? CUDA_ERROR_NOT_READY : error;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return enterStream(Entry::cuStreamSynchronize, handle, [&](Driver &driver, Stream &stream) {
    if (stream.capture != 0)
      return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    driver.queue.finish(stream.tail);
    return driver.errorOf(stream.context);
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  return enterStream(Entry::cuStreamWaitEvent, handle, [&](Driver &driver, Stream &stream) {
    CUresult error = CUDA_SUCCESS;
    const Event *awaited = driver.event(event, error);
    if (flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    return awaited ? wait(driver, stream, *awaited) : error;
  });
}

CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  return enterContext(Entry::cuEventCreate, [&](Driver &driver, Context &) {
    if (!handle || flags > 3) // a blocking wait, no times
      return CUDA_ERROR_INVALID_VALUE;
    Event made;
    made.context = currentContext;
    made.flags = flags;
    *handle = handleOf<CUevent>(driver.events.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return enter(Entry::cuEventDestroy_v2, [&](Driver &driver) {
    const Event *event = driver.events.find(idOf(handle));
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    const CUresult error = driver.errorOf(event->context);
    driver.events.erase(idOf(handle));
    return error;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream streamHandle) {
  return enterStream(Entry::cuEventRecord, streamHandle, [&](Driver &driver, Stream &stream) {
    CUresult error = CUDA_SUCCESS;
    Event *event = driver.event(handle, error);
    return event ? record(driver, idOf(handle), *event, stream) : error;
  });
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned flags) {
  return enterStream(Entry::cuEventRecordWithFlags, streamHandle, [&](Driver &driver, Stream &stream) {
    CUresult error = CUDA_SUCCESS;
    Event *event = driver.event(handle, error);
    const bool isNode = flags == CU_EVENT_RECORD_EXTERNAL && stream.capture != 0;
    if (flags != 0 && !isNode)
      return CUDA_ERROR_INVALID_VALUE;
    if (!event || !isNode)
      return event ? record(driver, idOf(handle), *event, stream) : error;
    return event->context == stream.context ? driver.enqueue(stream, {stream.context, Mark{idOf(handle), 0}})
                                            : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return enterEvent(Entry::cuEventQuery, handle, [&](Driver &driver, Event &event) {
    driver.queue.goOn();
    const CUresult error = driver.errorOf(event.context);
    return error == CUDA_SUCCESS && !driver.queue.isDone(event.operation) ? CUDA_ERROR_NOT_READY : error;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return enterEvent(Entry::cuEventSynchronize, handle, [&](Driver &driver, Event &event) {
    driver.queue.finish({event.operation});
    return driver.errorOf(event.context);
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  return enterEvent(Entry::cuEventElapsedTime, begin, [&](Driver &driver, Event &first) {
    CUresult error = CUDA_SUCCESS;
    const Event *last = driver.event(end, error);
    if (!milliseconds)
      return CUDA_ERROR_INVALID_VALUE;
    if (!last)
      return error;
    const bool isTimed = ((first.flags | last->flags) & CU_EVENT_DISABLE_TIMING) == 0;
    if (!isTimed || first.records == 0 || last->records == 0 || last->capture != 0 || first.context != last->context)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!driver.queue.areDone({first.operation, last->operation}))
      return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(last->time - first.time).count();
    return CUDA_SUCCESS;
  });
}
