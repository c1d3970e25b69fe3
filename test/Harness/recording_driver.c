/* A driver as others may write one: every entry point of base/CudaDriver.def counts its calls and jumps to that of
 * $K2C_RECORDED_DRIVER; allocations and launches of graphs are noted on the way. When the process ends, the counts go
 * to $K2C_RECORDED_FILE as JSON.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define K2C_CUDA(name, parameters)                                                                                     \
  static void *to_##name __attribute__((used));                                                                        \
  static unsigned long calls_of_##name __attribute__((used));                                                          \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                                          \
          "lock incq calls_of_" #name "(%rip)\njmp *to_" #name "(%rip)\n");
#include "base/CudaDriver.def"

typedef int (*alloc_fn)(unsigned long long *, size_t);
typedef int (*host_alloc_fn)(void **, size_t, unsigned);
typedef int (*launch_fn)(void *, void *);
static alloc_fn next_alloc;
static host_alloc_fn next_host_alloc;
static launch_fn next_launch;
static unsigned long device_bytes, pinned_bytes, launches, late;

static int alloc(unsigned long long *address, size_t bytes) {
  device_bytes += bytes;
  late += launches > 0;
  return next_alloc(address, bytes);
}

static int host_alloc(void **address, size_t bytes, unsigned flags) {
  pinned_bytes += bytes;
  late += launches > 0;
  return next_host_alloc(address, bytes, flags);
}

static int launch(void *graph, void *stream) {
  ++launches;
  return next_launch(graph, stream);
}

__attribute__((constructor)) static void open_driver(void) {
  void *const library = dlopen(getenv("K2C_RECORDED_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    abort();
  }
#define K2C_CUDA(name, parameters) to_##name = dlsym(library, #name);
#include "base/CudaDriver.def"
  next_alloc = (alloc_fn)to_cuMemAlloc_v2, to_cuMemAlloc_v2 = (void *)alloc;
  next_host_alloc = (host_alloc_fn)to_cuMemHostAlloc, to_cuMemHostAlloc = (void *)host_alloc;
  next_launch = (launch_fn)to_cuGraphLaunch, to_cuGraphLaunch = (void *)launch;
}

__attribute__((destructor)) static void write_counts(void) {
  FILE *const file = fopen(getenv("K2C_RECORDED_FILE"), "w");
  if (!file)
    abort();
  fprintf(file,
          "{\"device_bytes\":%lu,\"pinned_bytes\":%lu,\"graph_launches\":%lu,\"late_allocations\":%lu,\"calls\":{",
          device_bytes, pinned_bytes, launches, late);
  const char *comma = "";
#define K2C_CUDA(name, parameters) fprintf(file, "%s\"" #name "\":%lu", comma, calls_of_##name), comma = ",";
#include "base/CudaDriver.def"
  fprintf(file, "}}\n");
  fclose(file);
}
