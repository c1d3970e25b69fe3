// What the driver that tests play knows, and what it is to do.
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKECUDASTATE_H
#define K2C_UNIT_RUNTIME_FAKE_FAKECUDASTATE_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

struct Operation {
  enum { toDevice, toHost, set, kernel } kind;
  char *to = nullptr;
  const char *from = nullptr;
  size_t bytes = 0;
  std::string name;         // of a kernel
  std::vector<char> launch; // its first parameter
  std::vector<uint64_t> arguments;
  int workers = 0;
  unsigned char value = 0;
};

struct State {
  std::map<std::string, long> settings = {{"version", 12040},  {"devices", 1}, {"major", 9},    {"total", 80l << 30},
                                          {"free", 79l << 30}, {"ctas", 3},    {"threads", 64}, {"arguments", 5}};
  std::map<std::string, int> calls;
  std::string failing;
  int failingAt = 0, error = 0;
  std::set<const void *> alive;
  std::map<char *, size_t> device;
  std::vector<Operation> *capturing = nullptr;
  const std::vector<Operation> *late = nullptr; ///< a graph that begins when kernels have been told to end
  bool launched = false, told = false;
  int contexts = 0;
};

inline State &state() {
  static auto *const only = new State; // outlives every user
  return *only;
}

inline bool fails(const char *name) { return ++state().calls[name] == state().failingAt && state().failing == name; }
#define FAKE_ENTRY(name)                                                                                               \
  if (fails(#name))                                                                                                    \
  return static_cast<CUresult>(state().error)

#endif
