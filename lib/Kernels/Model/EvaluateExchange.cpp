//===- EvaluateExchange.cpp - Experts on several ranks --------------------===//
//
// Plans are made member by member: each in turn takes the rows that have choices there, in order, so that the numbers
// of messages and sums are those of a list that grows.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include "k2rt/placement.h"
#include <algorithm>
#include <set>

namespace k2c::evaluation {

namespace {

/// What a holder has of a layer's placement: the experts of its slots, and the subtrees of experts.
struct Held {
  const int32_t *experts, *subtrees;

  explicit Held(Arguments &args) : experts(args.array<int32_t>()), subtrees(args.array<int32_t>()) {}
  int32_t subtreeOf(int32_t slot) const { return subtrees[experts[slot]]; }
};

/// The choices of a token: messages, slots and returned rows of RoutePlanDesc.
struct Routes {
  int32_t *message, *slot, *returned;

  Routes(int32_t *routes, int64_t row, int64_t topK)
      : message(routes + row * 3 * topK), slot(message + topK), returned(slot + topK) {}
};

/// The choices of a message.
struct Choices {
  char *base;
  Choices(void *messages, int64_t message, int64_t rowBytes, int64_t topK)
      : base(static_cast<char *>(messages) + message * k2rt_message_bytes(rowBytes, topK) +
             k2rt_choices_offset(rowBytes)) {}
  int32_t *slot(int64_t k) const { return reinterpret_cast<int32_t *>(base + 8 * k); }
  float *weight(int64_t k) const { return reinterpret_cast<float *>(base + 8 * k + 4); }
};

int64_t bytesOf(const Rows &rows) { return rows.width * byteWidth(rows.type); }

void copyBytes(char *to, const char *from, int64_t bytes) { std::copy(from, from + bytes, to); }

} // namespace

Status run(const LocateDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *experts = args.array<int32_t>(), *places = args.array<int32_t>();
  int32_t *slots = args.array<int32_t>();
  for (int64_t route = 0; route < step.token_rows * d.topK; ++route) {
    if (experts[route] >= d.experts)
      return invalid("expert " + std::to_string(experts[route]) + " of " + std::to_string(d.experts));
  }
  for (int64_t row = 0; row < step.token_rows; ++row)
    for (int64_t k = 0; k < d.topK; ++k)
      slots[row * d.topK + k] =
          k2rt_placement_slot(places, d.experts, d.slotsOfNode, experts + row * d.topK, d.topK, k);
  return Status::success();
}

Status run(const RoutePlanDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *slots = args.array<int32_t>();
  const Held held(args);
  int32_t *routes = args.array<int32_t>();
  int64_t *sent = args.array<int64_t>(), *returned = args.array<int64_t>();
  std::fill(routes, routes + step.token_rows * 3 * d.topK, -1);
  int32_t messages = 0, sums = 0;
  for (int64_t member = 0; member < d.members; ++member) {
    sent[d.members + member] = messages;
    returned[d.members + member] = sums;
    for (int64_t row = 0; row < step.token_rows; ++row) {
      const Routes own(routes, row, d.topK);
      std::vector<int32_t> subtrees;
      for (int64_t k = 0; k < d.topK; ++k) {
        const int32_t slot = slots[row * d.topK + k];
        if (slot < 0 || slot / d.slots != member)
          continue;
        const auto known = std::find(subtrees.begin(), subtrees.end(), held.subtreeOf(slot));
        own.message[k] = messages;
        own.slot[k] = static_cast<int32_t>(slot % d.slots);
        own.returned[k] = sums + static_cast<int32_t>(known - subtrees.begin());
        if (known == subtrees.end())
          subtrees.push_back(held.subtreeOf(slot));
      }
      messages += !subtrees.empty();
      sums += static_cast<int32_t>(subtrees.size());
    }
    sent[member] = messages - sent[d.members + member];
    returned[member] = sums - returned[d.members + member];
  }
  return Status::success();
}

Status run(const PackDesc &d, Arguments args, const k2rt_ir_step &step) {
  const char *x = args.array<char>();
  const float *weights = args.array<float>();
  int32_t *routes = args.array<int32_t>();
  char *messages = args.array<char>();
  for (int64_t token = 0; token < step.token_rows; ++token) {
    const Routes own(routes, token, d.topK);
    const std::set<int32_t> all(own.message, own.message + d.topK);
    for (const int32_t message : all) {
      if (message < 0)
        continue;
      copyBytes(messages + message * k2rt_message_bytes(bytesOf(d.x), d.topK),
                x + token * d.x.stride * byteWidth(d.x.type), bytesOf(d.x));
      const Choices choices(messages, message, bytesOf(d.x), d.topK);
      for (int64_t k = 0; k < d.topK; ++k) {
        const bool isThere = own.message[k] == message;
        *choices.slot(k) = isThere ? own.slot[k] : -1;
        *choices.weight(k) = isThere ? weights[token * d.topK + k] : 0.0f;
      }
    }
  }
  return Status::success();
}

Status run(const UnpackDesc &d, Arguments args, const k2rt_ir_step &) {
  char *messages = args.array<char>();
  const int64_t *came = args.array<int64_t>();
  char *y = args.array<char>();
  int32_t *slots = args.array<int32_t>();
  float *weights = args.array<float>();
  int64_t row = 0;
  for (int64_t member = 0; member < d.members; ++member)
    for (int64_t i = 0; i < came[member]; ++i, ++row) {
      const int64_t message = came[d.members + member] + i;
      copyBytes(y + row * d.y.stride * byteWidth(d.y.type),
                messages + message * k2rt_message_bytes(bytesOf(d.y), d.topK), bytesOf(d.y));
      const Choices choices(messages, message, bytesOf(d.y), d.topK);
      for (int64_t k = 0; k < d.topK; ++k) {
        slots[row * d.topK + k] = *choices.slot(k);
        weights[row * d.topK + k] = *choices.weight(k);
      }
    }
  return Status::success();
}

/// The subtrees of a row's choices, in the order of these.
static std::vector<int32_t> subtreesOf(const int32_t *slots, int64_t topK, const Held &held) {
  std::vector<int32_t> subtrees;
  for (int64_t k = 0; k < topK; ++k)
    if (slots[k] >= 0 && std::find(subtrees.begin(), subtrees.end(), held.subtreeOf(slots[k])) == subtrees.end())
      subtrees.push_back(held.subtreeOf(slots[k]));
  return subtrees;
}

Status run(const ReturnPlanDesc &d, Arguments args, const k2rt_ir_step &) {
  const int32_t *slots = args.array<int32_t>();
  const int64_t *came = args.array<int64_t>();
  const Held held(args);
  int32_t *sums = args.array<int32_t>();
  int64_t *back = args.array<int64_t>();
  int64_t row = 0;
  int32_t all = 0;
  for (int64_t member = 0; member < d.members; ++member) {
    back[d.members + member] = all;
    for (int64_t i = 0; i < came[member]; ++i, ++row) {
      const auto count = static_cast<int32_t>(subtreesOf(slots + row * d.topK, d.topK, held).size());
      sums[2 * row] = all;
      sums[2 * row + 1] = count;
      all += count;
    }
    back[member] = all - back[d.members + member];
  }
  return Status::success();
}

/// The sums of a row's subtrees; rowOf(k): what choice k contributes, empty for nothing of its own.
template <class Desc>
static void sumSubtrees(const Desc &d, const int32_t *slots, int64_t firstSum, const Held &held, void *y,
                        const std::function<std::vector<float>(int64_t)> &rowOf) {
  for (const int32_t subtree : subtreesOf(slots, d.topK, held)) {
    std::vector<Contribution> contributions;
    for (int64_t k = 0; k < d.topK; ++k)
      if (slots[k] >= 0 && held.subtreeOf(slots[k]) == subtree)
        if (std::vector<float> row = rowOf(k); !row.empty())
          contributions.push_back({held.experts[slots[k]], std::move(row)});
    storeRow(y, d.y, firstSum++, sumOfExperts(contributions, 0, d.leaves, d.experts / d.leaves, d.y.type));
  }
}

Status run(const ReduceSubtreesDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  const Permutation permutation(args.pointer(), d.slots, step.token_rows * d.topK);
  const int32_t *slots = args.array<int32_t>(), *sums = args.array<int32_t>();
  const Held held(args);
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row)
    sumSubtrees(d, slots + row * d.topK, sums[2 * row], held, y,
                [&](int64_t k) { return loadRow(x, d.x, permutation.slotOfRoute[row * d.topK + k]); });
  return Status::success();
}

/// As in combine, a sum stands for the first of its choices.
Status run(const MergeSubtreesDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  int32_t *routes = args.array<int32_t>();
  const int32_t *slots = args.array<int32_t>(), *sums = args.array<int32_t>();
  const Held held(args);
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    const Routes own(routes, row, d.topK);
    std::set<int32_t> taken;
    sumSubtrees(d, slots + row * d.topK, sums[2 * row], held, y, [&](int64_t k) {
      return taken.insert(own.returned[k]).second ? loadRow(x, d.x, own.returned[k]) : std::vector<float>();
    });
  }
  return Status::success();
}

/// Each sum stands for the first of its choices: in the tree it is met there, and where its subtree's sum is.
Status run(const CombineDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  int32_t *routes = args.array<int32_t>();
  const int32_t *experts = args.array<int32_t>();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    const Routes own(routes, row, d.topK);
    std::vector<Contribution> contributions;
    std::set<int32_t> taken;
    for (int64_t k = 0; k < d.topK; ++k)
      if (experts[row * d.topK + k] >= 0 && taken.insert(own.returned[k]).second)
        contributions.push_back({experts[row * d.topK + k], loadRow(x, d.x, own.returned[k])});
    storeRow(y, d.y, row, sumOfExperts(contributions, 0, d.leaves, d.experts / d.leaves, d.y.type));
  }
  return Status::success();
}

/// Counts of `rows` rows that go to each member, for which each returns `back`.
static void shareWithAll(int64_t members, int64_t *sent, int64_t rows, int64_t *returned, int64_t back) {
  for (int64_t member = 0; member < members; ++member) {
    sent[member] = rows;
    sent[members + member] = 0;
    returned[member] = back;
    returned[members + member] = member * back;
  }
}

Status run(const SharePlanDesc &d, Arguments args, const k2rt_ir_step &step) {
  int64_t *sent = args.array<int64_t>(), *returned = args.array<int64_t>();
  const int64_t rows = rowCount(d.space, step);
  shareWithAll(d.members, sent, rows, returned, rows);
  return Status::success();
}

Status run(const CloseGapsDesc &d, Arguments args, const k2rt_ir_step &) {
  const char *x = args.array<char>();
  const int64_t *came = args.array<int64_t>();
  char *y = args.array<char>();
  int64_t row = 0;
  for (int64_t member = 0; member < d.members; ++member)
    for (int64_t i = 0; i < came[member]; ++i, ++row)
      copyBytes(y + row * d.y.stride * byteWidth(d.y.type), x + (came[d.members + member] + i) * bytesOf(d.y),
                bytesOf(d.y));
  return Status::success();
}

Status run(const ShareReturnDesc &d, Arguments args, const k2rt_ir_step &) {
  const int64_t *came = args.array<int64_t>();
  int64_t *back = args.array<int64_t>();
  int64_t rows = 0;
  for (int64_t member = 0; member < d.members; ++member) {
    back[member] = came[member];
    back[d.members + member] = rows;
    rows += came[member];
  }
  return Status::success();
}

Status run(const JoinColumnsDesc &d, Arguments args, const k2rt_ir_step &step) {
  const char *parts = args.array<char>();
  const int64_t *returned = args.array<int64_t>();
  char *y = args.array<char>();
  const int64_t element = byteWidth(d.y.type);
  for (int64_t row = 0; row < rowCount(d.y.space, step); ++row)
    for (int64_t member = 0; member < d.members; ++member)
      copyBytes(y + row * d.y.stride * element + member * bytesOf(d.x),
                parts + (returned[d.members + member] + row) * d.x.stride * element, bytesOf(d.x));
  return Status::success();
}

Status run(const PartPlanDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *slots = args.array<int32_t>();
  int32_t *routes = args.array<int32_t>();
  int64_t *sent = args.array<int64_t>(), *returned = args.array<int64_t>();
  std::fill(routes, routes + step.token_rows * 3 * d.topK, -1);
  int32_t choices = 0;
  for (int64_t row = 0; row < step.token_rows; ++row)
    for (int64_t k = 0; k < d.topK; ++k)
      if (const int32_t slot = slots[row * d.topK + k]; slot >= 0) {
        const Routes own(routes, row, d.topK);
        own.message[k] = static_cast<int32_t>(row);
        own.slot[k] = slot;
        own.returned[k] = choices++;
      }
  shareWithAll(d.members, sent, step.token_rows, returned, choices);
  return Status::success();
}

/// The sum of `parts`, each half of them first.
static float treeOf(const std::vector<float> &parts, size_t first, size_t count) {
  return count == 1 ? parts[first] : treeOf(parts, first, count / 2) + treeOf(parts, first + count / 2, count / 2);
}

Status run(const AddPartsDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  const int64_t *returned = args.array<int64_t>();
  int32_t *routes = args.array<int32_t>();
  const float *weights = args.array<float>();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row)
    for (int64_t k = 0; k < d.topK; ++k) {
      const int64_t number = Routes(routes, row, d.topK).returned[k];
      std::vector<float> parts(static_cast<size_t>(d.members));
      for (int64_t i = 0; number >= 0 && i < d.y.width; ++i) {
        for (int64_t member = 0; member < d.members; ++member)
          parts[member] = load(x, (returned[d.members + member] + number) * d.x.stride + i, d.x.type);
        store(y, number * d.y.stride + i, d.y.type, treeOf(parts, 0, parts.size()) * weights[row * d.topK + k]);
      }
    }
  return Status::success();
}

} // namespace k2c::evaluation
