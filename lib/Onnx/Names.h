//===- Names.h - strings to numbers -------------------------------------------===//
//
// Models of experts have hundreds of thousands of names, most of which come up several times. Each is kept once, in a
// list; a table of hashes and numbers finds it. What a name hashes to differs from process to process: a file cannot be
// made whose names all meet in one place of the table.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_NAMES_H
#define K2C_LIB_ONNX_NAMES_H

#include "Graph.h"
#include "Wire.h"
#include <string>
#include <vector>

namespace k2c::onnx {

/// Names, numbered in the order in which they come up.
class Names {
public:
  /// The number of a name, a new one if it has none yet; `noValue` of "".
  ValueId number(const std::string &name);
  /// The same for the text of a field, with the memory of a new name counted.
  ValueId read(Wire &wire);
  /// `noValue`: it has none.
  ValueId find(const std::string &name) const;
  /// All of them, by number. Ends the use of the object.
  std::vector<std::string> take() { return std::move(names); }

private:
  struct Slot {
    uint32_t hash = 0;
    ValueId value = noValue;
  };

  /// The slot of a name, or the free one where it would be. There is a free one.
  size_t slotOf(const std::string &name, uint32_t hash) const;
  void grow();

  std::vector<std::string> names;
  std::vector<Slot> slots; ///< a power of two of them, or none; at most half are taken
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_NAMES_H
