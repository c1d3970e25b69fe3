//===- Definitions.cpp - Registers that may be read before written --------===//
//
// A forward analysis over basic blocks: what has been written on every path to a block. A guarded instruction writes
// for some lanes only, and does not count. Reads of anything else are tracked when the kernel runs.
//
//===----------------------------------------------------------------------===//
#include "Definitions.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

/// Tables of more bits than this are not made: every slot is tracked then.
constexpr uint64_t maxTableBits = uint64_t(1) << 27;

using Set = std::vector<bool>;

struct Blocks {
  std::vector<uint32_t> first; ///< instruction of each; one more at the end
  std::vector<std::vector<uint32_t>> before;

  explicit Blocks(const Program &program);
  size_t count() const { return before.size(); }
};

/// Calls `body` with where lanes may branch to from `operation`.
template <class Body> void forTargets(const Program &program, const Operation &operation, Body body) {
  if (operation.flow == Flow::Branch)
    body(operation.target);
  for (uint64_t i = 0; operation.flow == Flow::Table && i < operation.immediate; ++i)
    body(program.lists[operation.first + i]);
}

Blocks::Blocks(const Program &program) {
  const std::vector<Operation> &code = program.code;
  std::vector<bool> isFirst(code.size() + 1);
  isFirst[0] = isFirst[code.size()] = true;
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].flow != Flow::Next) {
      isFirst[i + 1] = true;
      forTargets(program, code[i], [&](uint32_t target) { isFirst[target] = true; });
    }
  std::vector<uint32_t> blockAt(code.size() + 1);
  for (uint32_t i = 0; i <= code.size(); ++i) {
    if (isFirst[i])
      first.push_back(i);
    blockAt[i] = static_cast<uint32_t>(first.size() - 1);
  }
  before.resize(first.size() - 1);
  for (uint32_t block = 0; block < count(); ++block) {
    const Operation &last = code[first[block + 1] - 1];
    forTargets(program, last, [&](uint32_t target) { before[blockAt[target]].push_back(block); });
    if ((last.flow == Flow::Next || last.guard != noSlot) && block + 1 < count())
      before[block + 1].push_back(block);
  }
}

class Analysis {
public:
  Analysis(Program &program, const std::vector<std::vector<Slot>> &reads, const std::vector<std::vector<Slot>> &writes)
      : program(program), reads(reads), writes(writes), blocks(program) {
    for (const std::vector<Slot> &slots : writes)
      for (const Slot slot : slots)
        numbers.emplace(slot, static_cast<uint32_t>(numbers.size()));
  }

  void run() {
    std::vector<Set> behind;
    const bool isSmall = blocks.count() * numbers.size() < maxTableBits;
    if (isSmall)
      behind = solve();
    for (uint32_t block = 0; block < blocks.count(); ++block) {
      Set known = isSmall ? atEntry(block, behind) : Set(numbers.size(), false);
      for (uint32_t i = blocks.first[block]; i < blocks.first[block + 1]; ++i)
        check(i, known);
    }
    for (uint32_t i = 0; i < program.code.size(); ++i) {
      Operation &operation = program.code[i];
      operation.marked = static_cast<uint32_t>(program.lists.size());
      for (const Slot slot : writes[i])
        if (const auto at = tracked.find(slot); at != tracked.end())
          program.lists.push_back(at->second);
      operation.markedCount = static_cast<uint32_t>(program.lists.size()) - operation.marked;
    }
  }

private:
  void write(uint32_t instruction, Set &known) const {
    if (program.code[instruction].guard == noSlot)
      for (const Slot slot : writes[instruction])
        known[numbers.at(slot)] = true;
  }

  Set atEntry(uint32_t block, const std::vector<Set> &behind) const {
    Set known(numbers.size(), block != 0);
    for (const uint32_t other : blocks.before[block])
      for (size_t i = 0; i < known.size(); ++i)
        known[i] = known[i] && behind[other][i];
    return known;
  }

  /// What is known behind each block.
  std::vector<Set> solve() const {
    std::vector<Set> behind(blocks.count(), Set(numbers.size(), true));
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (uint32_t block = 0; block < blocks.count(); ++block) {
        Set known = atEntry(block, behind);
        for (uint32_t i = blocks.first[block]; i < blocks.first[block + 1]; ++i)
          write(i, known);
        if (known != behind[block]) {
          behind[block] = std::move(known);
          isChanged = true;
        }
      }
    }
    return behind;
  }

  void check(uint32_t instruction, Set &known) {
    Operation &operation = program.code[instruction];
    operation.checked = static_cast<uint32_t>(program.lists.size());
    for (const Slot slot : reads[instruction]) {
      const auto number = numbers.find(slot);
      if (number != numbers.end() && known[number->second])
        continue;
      const auto [at, isNew] = tracked.emplace(slot, static_cast<uint32_t>(program.tracked.size()));
      if (isNew)
        program.tracked.push_back(slot);
      program.lists.push_back(at->second);
    }
    operation.checkedCount = static_cast<uint32_t>(program.lists.size()) - operation.checked;
    write(instruction, known);
  }

  Program &program;
  const std::vector<std::vector<Slot>> &reads, &writes;
  Blocks blocks;
  std::map<Slot, uint32_t> numbers, tracked;
};

} // namespace

void findUndefined(Program &program, const std::vector<std::vector<Slot>> &reads,
                   const std::vector<std::vector<Slot>> &writes) {
  Analysis(program, reads, writes).run();
}

} // namespace k2c::ptx
