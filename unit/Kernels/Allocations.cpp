//===- Allocations.cpp - What operator new has given and not taken back ---------------------------===//
#include "Allocations.h"
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace {

/// The list's own memory is none of operator new.
template <class T> struct Plain {
  using value_type = T;
  Plain() = default;
  template <class U> Plain(const Plain<U> &) {}
  T *allocate(size_t n) { return static_cast<T *>(std::malloc(n * sizeof(T))); }
  void deallocate(T *p, size_t) { std::free(p); }
  bool operator==(const Plain &) const { return true; }
};

struct List {
  std::mutex mutex;
  bool isClosed = false;
  std::map<void *, size_t, std::less<>, Plain<std::pair<void *const, size_t>>> sizes;
};

/// Never destroyed: others end later.
List &list() {
  alignas(List) static char place[sizeof(List)];
  static List *made = new (place) List;
  return *made;
}

void *take(size_t bytes, size_t alignment) {
  void *given = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (!given)
    std::abort();
  std::lock_guard guard(list().mutex);
  if (!list().isClosed)
    list().sizes[given] = bytes;
  return given;
}

void give(void *taken) {
  if (!taken)
    return;
  {
    std::lock_guard guard(list().mutex);
    list().sizes.erase(taken);
  }
  std::free(taken);
}

} // namespace

void *operator new(size_t bytes) { return take(bytes, alignof(std::max_align_t)); }
void *operator new(size_t bytes, std::align_val_t alignment) { return take(bytes, size_t(alignment)); }
void operator delete(void *taken) noexcept { give(taken); }
void operator delete(void *taken, size_t) noexcept { give(taken); }
void operator delete(void *taken, std::align_val_t) noexcept { give(taken); }
void operator delete(void *taken, size_t, std::align_val_t) noexcept { give(taken); }

k2c::test::Unlisted::Unlisted() { list().isClosed = true; }
k2c::test::Unlisted::~Unlisted() { list().isClosed = false; }

std::vector<std::pair<void *, size_t>> k2c::test::allocations() {
  std::vector<std::pair<void *, size_t>> all;
  all.reserve(list().sizes.size() + 1); // it is in the list then
  std::lock_guard guard(list().mutex);
  all.assign(list().sizes.begin(), list().sizes.end());
  return all;
}
