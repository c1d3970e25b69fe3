//===- Names.cpp - strings to numbers -----------------------------------------===//
#include "Names.h"
#include <random>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace k2c::onnx {

namespace {

uint32_t hashOfName(const std::string &name) {
  static const uint64_t seed = std::random_device()();
  return static_cast<uint32_t>(XXH3_64bits_withSeed(name.data(), name.size(), seed));
}

} // namespace

size_t Names::slotOf(const std::string &name, uint32_t hash) const {
  const size_t last = slots.size() - 1;
  for (size_t at = hash & last;; at = (at + 1) & last) {
    const Slot &slot = slots[at];
    if (slot.value == noValue || (slot.hash == hash && names[static_cast<size_t>(slot.value)] == name))
      return at;
  }
}

void Names::grow() {
  const std::vector<Slot> before = std::move(slots);
  slots.assign(before.empty() ? 16 : before.size() * 2, Slot());
  const size_t last = slots.size() - 1;
  for (const Slot &slot : before) {
    if (slot.value == noValue)
      continue;
    size_t at = slot.hash & last;
    while (slots[at].value != noValue)
      at = (at + 1) & last;
    slots[at] = slot;
  }
}

ValueId Names::number(const std::string &name) {
  if (name.empty())
    return noValue;
  if (slots.size() <= names.size() * 2)
    grow();
  const uint32_t hash = hashOfName(name);
  Slot &slot = slots[slotOf(name, hash)];
  if (slot.value == noValue) {
    slot = {hash, static_cast<ValueId>(names.size())};
    names.push_back(name);
  }
  return slot.value;
}

ValueId Names::find(const std::string &name) const {
  return slots.empty() ? noValue : slots[slotOf(name, hashOfName(name))].value;
}

ValueId Names::read(Wire &wire) {
  constexpr int64_t nameBytes = 96; // beside its text: the string, two slots of the table twice over, its definer
  const size_t before = names.size();
  const ValueId value = number(wire.text());
  wire.take(names.size() > before ? nameBytes : static_cast<int64_t>(sizeof(value)));
  return value;
}

} // namespace k2c::onnx
