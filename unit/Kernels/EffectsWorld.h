//===- EffectsWorld.h - All memory that a kernel body may touch ---------------===//
//
// Arguments and captures as named regions of bytes, filled so that a body can run on them, whichever it is, in any
// step.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_EFFECTSWORLD_H
#define K2C_UNIT_KERNELS_EFFECTSWORLD_H

#include "TestStep.h"
#include <algorithm>
#include <optional>
#include <set>

namespace k2c::test {

constexpr int64_t topK = 2, experts = 4, ranks = 2, expertSlots = 4, layers = 3, slotRows = TestStep::pageCount * 64;
inline constexpr const char *captureNames[] = {"capture of hidden rows", "capture of experts", "capture of weights",
                                               "capture of the largest logits", "samples"};

/// The memory of one argument or capture, and what is declared of it.
struct Region {
  std::string name;
  Effect effect;
  int64_t rowBytes = 0; ///< 0: it has no rows
  std::vector<char> bytes = {};
  int64_t rows() const { return rowBytes ? int64_t(bytes.size()) / rowBytes : 0; }
};

/// What the tokens of a step have chosen.
enum class Choices : uint8_t {
  Neighbours, ///< experts next to each other
  One,        ///< all the same expert, and no other
  Some,       ///< any experts, or none
};

/// The step that a body runs in.
struct Scene {
  std::vector<Sequence> sequences = {{2, 3, K2RT_FORM_EXPANDED}, {0, 2, K2RT_FORM_ABSORBED}};
  Choices choices = Choices::Neighbours;
};

/// Unless the scene says otherwise two sequences, three expanded rows and two absorbed ones. The last row and the
/// second are wanted; behind them is the place of another row. A token has as many experts as the body says, else two.
/// On two ranks these make one message and one sum.
struct World {
  World(const KernelBody &body, const std::vector<Operand> &operands, char fill, const Scene &scene = {});
  World(const World &) = delete;

  Region &add(std::string name, Effect effect, int64_t rowBytes, int64_t bytes) {
    regions.push_back({std::move(name), std::move(effect), rowBytes});
    regions.back().bytes.resize(bytes);
    return regions.back();
  }
  void addOperand(const Operand &operand, Random &random);
  void fillNumbers(Region &region, const Operand &operand, Random &random) const;
  void addCaptures(const Effect &step);
  std::vector<int32_t> routes(uint64_t turn) const;
  std::vector<int32_t> permutation(uint64_t turn) const;
  std::vector<int32_t> plannedRoutes(bool ofParts, uint64_t turn) const;
  std::vector<int32_t> sums(uint64_t turn) const;
  /// What an operand of numbers may hold; with another turn, something else that it may hold.
  std::vector<int32_t> numbers(const Operand &operand, uint64_t turn) const;
  /// Rows from each rank, then the first of them.
  std::vector<int64_t> counts(uint64_t turn) const {
    const int64_t half = (step.rows() + 1) / 2, rest = step.rows() / 2;
    return turn ? std::vector<int64_t>{rest, half, half + 1, 1} : std::vector<int64_t>{half, rest, 0, half};
  }
  /// Gives row `row`, or all with -1, of region `index` other bytes that a kernel may find there.
  void change(size_t index, int64_t row);
  /// Runs the body, as evaluate() reads it or as `run` does.
  using Run = std::function<void(const KernelDesc &, const k2rt_ir_step &, const std::vector<void *> &)>;
  void run(const Run &run = evaluated);
  static void evaluated(const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args) {
    EXPECT_TRUE(evaluate(desc, args.data(), step, WeightLayout::Panels));
  }

  KernelDesc desc;
  TestStep step;
  Choices choices;
  int64_t topK = test::topK, experts = test::experts; ///< of the body
  std::vector<int32_t> tokens, outputs;
  std::vector<Region> regions;    ///< arguments, then captures
  std::vector<Operand> arguments; ///< of the first regions
  char fill;                      ///< of what is not read
};

template <class T> void store(Region &region, const std::vector<T> &values) {
  std::memcpy(region.bytes.data(), values.data(), std::min(region.bytes.size(), values.size() * sizeof(T)));
}

/// Experts of each token, those that are neighbours turned by `turn`.
inline std::vector<int32_t> World::routes(uint64_t turn) const {
  std::vector<int32_t> chosen;
  Random random(13);
  for (int64_t token = 0; token < step.rows(); ++token) {
    const auto first = choices == Choices::Some ? uint64_t(random.below(experts)) : 2 * uint64_t(token) + turn;
    for (int64_t k = 0; k < topK; ++k) {
      const bool isNone = choices == Choices::One ? k > 0 : choices == Choices::Some && random.below(5) == 0;
      chosen.push_back(isNone ? -1 : choices == Choices::One ? 1 : int32_t((first + uint64_t(k)) % uint64_t(experts)));
    }
  }
  return chosen;
}

inline std::vector<int32_t> World::permutation(uint64_t turn) const {
  std::vector<int32_t> chosen = routes(turn), built(experts + 1 + 2 * chosen.size());
  void *args[] = {chosen.data(), built.data()};
  EXPECT_TRUE(evaluate({"permutation", PermutationDesc{experts, topK}}, args, step.step, WeightLayout::Panels));
  return built;
}

/// Message i and slots of each token i, and the row that comes back for each of its choices; with another turn that of
/// another one, of an expert's parts the token's own.
inline std::vector<int32_t> World::plannedRoutes(bool ofParts, uint64_t turn) const {
  std::vector<int32_t> list;
  for (int64_t token = 0; token < step.rows(); ++token) {
    list.insert(list.end(), topK, int32_t(token));
    list.insert(list.end(), topK, int32_t(turn));
    for (int64_t k = 0; k < topK; ++k)
      list.push_back(int32_t(ofParts ? token * topK + (k + int64_t(turn)) % topK
                                     : ((token + int64_t(turn)) * topK + k) % (step.rows() * topK)));
  }
  return list;
}

/// The first of each token's sums and their number, one for each subtree of its choices; with another turn one behind
/// those of all.
inline std::vector<int32_t> World::sums(uint64_t turn) const {
  std::vector<int32_t> list, chosen = routes(0);
  int32_t next = 0;
  for (int64_t token = 0; token < step.rows(); ++token) {
    std::set<int32_t> subtrees;
    for (int64_t k = 0; k < topK; ++k)
      if (const int32_t expert = chosen[token * topK + k]; expert >= 0)
        subtrees.insert(expert / 2);
    list.push_back(turn ? int32_t(step.rows()) : next);
    list.push_back(turn ? 1 : int32_t(subtrees.size()));
    next += int32_t(subtrees.size());
  }
  return list;
}

inline std::vector<int32_t> World::numbers(const Operand &operand, uint64_t turn) const {
  if (operand.role == Operand::Role::Places) // the last expert in two slots, or in one
    return turn ? std::vector<int32_t>{0, 1, 2, 3, 4, 5, 0, 1, 4, 0, 0}
                : std::vector<int32_t>{0, 1, 2, 3, 5, 0, 1, 4, 5, 2, 0};
  if (operand.role == Operand::Role::Held) // slots are those of routes()
    return turn ? std::vector<int32_t>{0, 1, 3, 0} : std::vector<int32_t>{0, 1, 2, 3};
  if (operand.role == Operand::Role::Subtrees) // two experts in each, or in the first
    return turn ? std::vector<int32_t>{0, 0, 2, 3} : std::vector<int32_t>{0, 0, 2, 2};
  if (operand.rows.width > 0 && operand.elements > 0)
    return permutation(turn);
  if (operand.name == "routes" || operand.name == "part_routes")
    return plannedRoutes(operand.name == "part_routes", turn);
  if (operand.name == "sums")
    return sums(turn);
  std::vector<int32_t> list =
      operand.name == "ids" || !turn ? routes(turn) : std::vector<int32_t>(step.rows() * topK, -1);
  if (operand.name == "ids") // of tokens
    for (int32_t &id : list)
      id = std::max(id, 0);
  return list;
}

/// Numbers of the operand's type; of e4m3 none that is no number, and each block's scale.
inline void World::fillNumbers(Region &region, const Operand &operand, Random &random) const {
  const DType type = operand.isMatrix()       ? operand.matrix.type
                     : operand.rows.width > 0 ? operand.rows.type
                                              : operand.type;
  const auto size = int64_t(region.bytes.size());
  if (type == DType::BF16) {
    Array numbers(type, random.vector(size / 2));
    std::memcpy(region.bytes.data(), numbers.data(), size_t(size));
    return;
  }
  if (type != DType::F8E4M3)
    return store(region, random.vector(size / 4));
  for (char &code : region.bytes)
    code = char(random.below(127) | random.below(2) << 7);
  const Matrix &matrix = operand.matrix;
  const PanelLayout layout{matrix};
  for (int64_t m = 0; m < matrix.count; ++m)
    for (int64_t n = 0; n < matrix.n; ++n)
      for (int64_t k = 0; k < matrix.k; ++k) {
        const int64_t at = layout.scaleOffset(m, n, k);
        const float scale = std::ldexp(1.5f, int(at / 4 % 7) - 9);
        std::memcpy(&region.bytes[at], &scale, sizeof scale);
      }
}

inline void World::addOperand(const Operand &operand, Random &random) {
  using Role = Operand::Role;
  const Rows &rows = operand.rows;
  const bool hasSums = std::holds_alternative<ReduceSubtreesDesc>(desc.body) ||
                       std::holds_alternative<MergeSubtreesDesc>(desc.body) ||
                       std::holds_alternative<CombineDesc>(desc.body);
  int64_t count = rows.space == RowSpace::Output ? int64_t(outputs.size())
                  : rows.space == RowSpace::Slot || (hasSums && operand.effect.isWritten())
                      ? step.rows() * topK // a row of each choice
                      : step.rows() + 1;
  if (operand.name == "parts") // rows of each rank
    count *= ranks;
  bool isPermutation = rows.width > 0 && operand.elements > 0, hasRows = rows.width > 0 && !isPermutation;
  int64_t rowBytes = hasRows ? rows.stride * byteWidth(rows.type) : 0;
  int64_t bytes = operand.role == Role::Plane                                 ? slotRows * rowBytes
                  : operand.role == Role::Step || operand.role == Role::Layer ? 0
                  : isPermutation                                             ? 4 * int64_t(permutation(0).size())
                  : hasRows                                                   ? count * rowBytes
                  : operand.isMatrix() ? PanelLayout{operand.matrix}.bytes()
                                       : operand.elements * byteWidth(operand.type);
  Region &region = add(operand.name, operand.effect, rowBytes, bytes);
  if (operand.effect.isWritten() && !operand.effect.isRead())
    std::fill(region.bytes.begin(), region.bytes.end(), fill);
  else if (isPermutation || operand.type == DType::I32)
    store(region, numbers(operand, 0));
  else if (operand.type == DType::I64)
    store(region, counts(0));
  else
    fillNumbers(region, operand, random);
}

inline void World::addCaptures(const Effect &step_) {
  for (Capture capture : {Capture::Hidden, Capture::Experts, Capture::Weights, Capture::MaxLogit, Capture::Samples}) {
    const std::vector<Capture> &into = step_.captured();
    bool isDeclared = std::find(into.begin(), into.end(), capture) != into.end();
    Region &region = add(captureNames[size_t(capture)], isDeclared ? Effect::destroys() : Effect::none(), 0,
                         layers * step.rows() * 64 * 4);
    std::fill(region.bytes.begin(), region.bytes.end(), fill);
  }
}

inline World::World(const KernelBody &body, const std::vector<Operand> &operands, char fill, const Scene &scene)
    : desc{"kernel", body}, step(scene.sequences), choices(scene.choices), arguments(operands), fill(fill) {
  if (const auto *permutation = std::get_if<PermutationDesc>(&body))
    topK = permutation->topK, experts = permutation->experts;
  for (int64_t row = 0; row < step.rows(); ++row)
    tokens.push_back(int32_t((3 + 5 * row) % 8));
  for (int64_t row : {step.rows() - 1, int64_t(1)})
    if (row >= 0 && row < step.rows())
      outputs.push_back(int32_t(row));
  Random random(7);
  Effect ofStep = Effect::none();
  for (const Operand &operand : operands) {
    addOperand(operand, random);
    if (operand.role == Operand::Role::Step)
      ofStep = operand.effect;
  }
  addCaptures(ofStep);
  step.step.token_ids = tokens.data();
  step.step.outputs = outputs.data();
  step.step.output_rows = int64_t(outputs.size());
}

inline void World::change(size_t index, int64_t row) {
  Region &region = regions[index], other{region.name, region.effect, region.rowBytes, region.bytes};
  Random random(8);
  const Operand &operand = arguments[index];
  bool isPermutation = operand.rows.width > 0 && operand.elements > 0;
  if (isPermutation || operand.type == DType::I32)
    store(other, numbers(operand, 1));
  else if (operand.type == DType::I64)
    store(other, counts(1));
  else
    fillNumbers(other, operand, random);
  if (row < 0)
    region.bytes = other.bytes;
  else
    std::copy_n(other.bytes.begin() + row * region.rowBytes, region.rowBytes,
                region.bytes.begin() + row * region.rowBytes);
}

inline void World::run(const Run &run) {
  std::vector<void *> args;
  std::optional<ExpertTable> table;
  const auto *linear = std::get_if<LinearDesc>(&desc.body);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (linear && linear->grouped && arguments[i].isMatrix())
      table.emplace(arguments[i].matrix, regions[i].bytes.data());
  for (size_t i = 0; i < arguments.size(); ++i)
    args.push_back(arguments[i].role == Operand::Role::Step    ? static_cast<void *>(&step.step)
                   : arguments[i].role == Operand::Role::Layer ? ordinal(1)
                   : table && arguments[i].isMatrix()          ? table->data()
                                                               : regions[i].bytes.data());
  void **captures[] = {&step.step.capture_hidden, &step.step.capture_experts, &step.step.capture_weights,
                       &step.step.capture_max_logit, &step.step.samples};
  for (size_t i = 0; i < std::size(captures); ++i)
    *captures[i] = regions[arguments.size() + i].bytes.data();
  run(desc, step.step, args);
}

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_EFFECTSWORLD_H
