// JSON to a stream as it is made: nothing is held back, floats have the 9 digits that bring every float32 back.
#ifndef K2RT_RUN_JSONWRITER_H
#define K2RT_RUN_JSONWRITER_H

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

namespace k2c::runtime {

/// Writes one document. Commas are its business; the caller opens and closes.
class JsonWriter {
public:
  explicit JsonWriter(FILE *file) : file(file) {}

  JsonWriter &beginObject() { return open('{'); }
  JsonWriter &endObject() { return close('}'); }
  JsonWriter &beginList() { return open('['); }
  JsonWriter &endList() { return close(']'); }
  JsonWriter &key(std::string_view name);
  JsonWriter &value(std::string_view text);
  JsonWriter &value(int64_t number);
  /// 9 significant digits; null for what is not finite.
  JsonWriter &value(float number);
  /// 17 significant digits; null for what is not finite.
  JsonWriter &value(double number);
  /// A value that is JSON text already.
  JsonWriter &raw(std::string_view json);
  template <class T> JsonWriter &list(const T *values, int64_t count) {
    beginList();
    for (int64_t i = 0; i < count; ++i)
      value(values[i]);
    return endList();
  }
  JsonWriter &value(int32_t number) { return value(static_cast<int64_t>(number)); }
  void endLine() { std::fputc('\n', file); }

private:
  JsonWriter &open(char bracket);
  JsonWriter &close(char bracket);
  void separate();
  void digits(double number, int precision);

  FILE *file;
  bool comma = false;    ///< a value stands before this one in its list or object
  bool afterKey = false; ///< the next value belongs to a key
};

} // namespace k2c::runtime

#endif
