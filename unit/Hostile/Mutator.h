//===- Mutator.h - files that lie -----------------------------------------===//
//
// Seeded damage to files. JSON is changed where it means something: one or two nodes of the document get another type,
// a number out of range, a name twice, a depth of thousands; text that no JSON library would write (NaN, 1e999, broken
// UTF-8, a key twice) is spliced in after printing. Any file can also be cut, or changed byte by byte.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_HOSTILE_MUTATOR_H
#define K2C_UNIT_HOSTILE_MUTATOR_H

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace k2c::test {

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  /// A mutant of a JSON text: nearly always structural, else of its bytes.
  std::string json(const std::string &text);
  /// A mutant of a safetensors file: of its header, of the header's length, or cut.
  std::string safetensors(const std::string &bytes);
  /// A mutant of a file of lines.
  std::string lines(const std::string &text);
  /// A few bytes overwritten, removed or repeated, or the end cut off.
  std::string bytes(std::string text);

  size_t below(size_t count) { return random() % count; }

private:
  using Json = nlohmann::ordered_json;
  Json &anyNode(Json &root);
  void change(Json &root);
  void changeObject(Json &object);
  std::string raw(std::string text);

  std::mt19937 random;
  /// Texts that stand for the strings "@raw0", "@raw1", ... of the document.
  std::vector<std::string> spliced;
};

} // namespace k2c::test

#endif // K2C_UNIT_HOSTILE_MUTATOR_H
