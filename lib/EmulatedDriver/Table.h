//===- Table.h - Objects by handle ----------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_TABLE_H
#define K2C_LIB_EMULATEDDRIVER_TABLE_H

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace k2c::emulated {

/// The number that a handle is; it points to nothing.
template <class Handle> uint64_t idOf(Handle handle) { return reinterpret_cast<uint64_t>(handle); }
template <class Handle> Handle handleOf(uint64_t id) { return reinterpret_cast<Handle>(id); }

/// A number that no object has had. Multiples of 16, so that none is a special stream.
inline uint64_t nextId() {
  static uint64_t last = 0xcdaULL << 32;
  return last += 16;
}

/// Objects of a kind. A handle that is of another kind, or of an object that is gone, is found.
template <class T> class Table {
public:
  uint64_t add(T object) {
    const uint64_t id = nextId();
    objects.emplace(id, std::move(object));
    return id;
  }
  /// null: there is none.
  T *find(uint64_t id) {
    const auto found = objects.find(id);
    return found == objects.end() ? nullptr : &found->second;
  }
  void erase(uint64_t id) { objects.erase(id); }
  size_t size() const { return objects.size(); }
  auto begin() { return objects.begin(); }
  auto end() { return objects.end(); }
  /// Removes those that `isGone(object)` says; how many they are.
  template <class IsGone> uint64_t eraseIf(IsGone isGone) {
    uint64_t count = 0;
    for (auto at = objects.begin(); at != objects.end();)
      if (isGone(at->second)) {
        at = objects.erase(at);
        ++count;
      } else {
        ++at;
      }
    return count;
  }

private:
  std::unordered_map<uint64_t, T> objects;
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_TABLE_H
