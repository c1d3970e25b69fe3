// Results too large to hold: a temporary file without a name, written as steps deliver, read once to print.
#ifndef K2RT_RUN_BUFFEREDROWS_H
#define K2RT_RUN_BUFFEREDROWS_H

#include "base/Error.h"
#include <cstdint>
#include <cstdio>
#include <memory>

namespace k2c::runtime {

/// An array in a file that the system removes. Unwritten parts read as zeros.
class BufferedRows {
public:
  static Expected<BufferedRows> create();

  /// Copies `count` elements to or from index `at`. A full disk is remembered: see status().
  template <class T> void write(int64_t at, const T *values, int64_t count) {
    writeBytes(at * int64_t(sizeof(T)), values, count * int64_t(sizeof(T)));
  }
  template <class T> void read(int64_t at, T *values, int64_t count) {
    readBytes(at * int64_t(sizeof(T)), values, count * int64_t(sizeof(T)));
  }
  /// Whether everything so far went well.
  Status status() const;

private:
  struct Closer {
    void operator()(FILE *file) const { std::fclose(file); }
  };
  void writeBytes(int64_t offset, const void *bytes, int64_t count);
  void readBytes(int64_t offset, void *bytes, int64_t count);

  std::unique_ptr<FILE, Closer> file;
  int failed = 0; ///< errno of the first failure
};

} // namespace k2c::runtime

#endif
