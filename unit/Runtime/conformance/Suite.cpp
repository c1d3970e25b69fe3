// The cases: each collective over each group of the grid, in sizes at every border (nothing, in the header, behind it,
// odd), then several at once. References are written from the definitions, element by element, and share no code with
// the exchange.
#include "Suite.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace k2c::runtime;

namespace k2c::test {
namespace {

constexpr Axis axes[] = {Axis::world, Axis::tp,   Axis::dp,   Axis::etp,     Axis::ep,
                         Axis::pp,    Axis::node, Axis::rail, Axis::replica, Axis::stage};
constexpr int64_t sizes[] = {0, 1, 7, 472, 473, 4096, 100003};

uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = a * 0x9e3779b97f4a7c15 ^ b * 0xbf58476d1ce4e5b9 ^ c * 0x94d049bb133111eb;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

using Bytes = std::vector<unsigned char>;

/// What `from` sends to `to` (a rank, or 0 for all) at a site.
Bytes bytesOf(int32_t from, int32_t to, uint32_t site, int64_t count) {
  Bytes bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(mixed(from + 1000 * to, site, i));
  return bytes;
}

/// Values of many magnitudes: the order of their sum shows.
float valueOf(int32_t rank, uint32_t site, int64_t i) {
  const uint64_t bits = mixed(rank, site, i);
  return std::ldexp(static_cast<float>(static_cast<int64_t>(bits % 2000001) - 1000000), static_cast<int>(bits >> 59));
}

/// The balanced tree over members [first, first + count), left part the largest power of two below count.
float treeOf(const Group &group, uint32_t site, int64_t i, int32_t first, int32_t count) {
  if (count == 1)
    return valueOf(group.rank(first), site, i);
  int32_t left = 1;
  while (2 * left < count)
    left *= 2;
  const float a = treeOf(group, site, i, first, left), b = treeOf(group, site, i, first + left, count - left);
  return a + b;
}

std::string wrong(const Collective &c, int64_t bytes) {
  return placeOf(c) + " of " + std::to_string(bytes) + " bytes has another result\n";
}

/// Over every axis and size: `check(collective, group)` runs it and says what is wrong.
template <class Check> std::string overGroups(Rank &rank, Op op, Check check) {
  std::string found;
  for (Axis axis : axes)
    for (int64_t size : sizes) {
      Collective c{op, axis, ++rank.site};
      c.bytes = size;
      found += check(c, rank.exchange.group(axis));
    }
  return found;
}

std::string run(Rank &rank, const Collective &c) {
  Status done = rank.exchange.run(c);
  return done ? "" : done.error().text() + "\n";
}

std::string allGather(Rank &rank) {
  return overGroups(rank, Op::allGather, [&](Collective c, const Group &g) {
    const Bytes own = bytesOf(rank.exchange.rank(), 0, c.site, c.bytes);
    Bytes all(own.size() * g.size), expected;
    c.source = own.data();
    c.result = all.data();
    std::string found = run(rank, c);
    for (int32_t i = 0; i < g.size; ++i) {
      const Bytes part = bytesOf(g.rank(i), 0, c.site, c.bytes);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    return found + (all == expected ? "" : wrong(c, c.bytes));
  });
}

std::string equalParts(Rank &rank, Op op, Collective c, const Group &g) {
  Bytes own, all(static_cast<size_t>(c.bytes) * g.size), expected;
  for (int32_t i = 0; i < g.size; ++i) {
    const Bytes sent = bytesOf(rank.exchange.rank(), g.rank(i), c.site, c.bytes);
    const Bytes came = bytesOf(g.rank(i), rank.exchange.rank(), c.site, c.bytes);
    own.insert(own.end(), sent.begin(), sent.end());
    expected.insert(expected.end(), came.begin(), came.end());
  }
  c.op = op;
  c.source = own.data();
  c.result = all.data();
  std::string found = run(rank, c);
  return found + (all == expected ? "" : wrong(c, c.bytes));
}

std::string allToAll(Rank &rank) {
  return overGroups(rank, Op::allToAll,
                    [&](Collective c, const Group &g) { return equalParts(rank, Op::allToAll, c, g); });
}

std::string counts(Rank &rank) {
  return overGroups(rank, Op::counts, [&](Collective c, const Group &g) {
    c.bytes = sizeof(int64_t);
    return equalParts(rank, Op::counts, c, g);
  });
}

std::string broadcast(Rank &rank) {
  return overGroups(rank, Op::broadcast, [&](Collective c, const Group &g) {
    std::string found;
    for (c.peer = 0; c.peer < g.size; ++c.peer, c.site = ++rank.site) {
      const Bytes sent = bytesOf(g.rank(c.peer), 0, c.site, c.bytes);
      Bytes came(sent.size());
      c.source = sent.data();
      c.result = came.data();
      found += run(rank, c);
      found += g.self == c.peer || came == sent ? "" : wrong(c, c.bytes);
    }
    return found;
  });
}

/// Along the axis, as stages of a pipeline: each sends to the next while it receives from the one before.
std::string sendReceive(Rank &rank) {
  return overGroups(rank, Op::send, [&](Collective c, const Group &g) -> std::string {
    const Bytes own = bytesOf(rank.exchange.rank(), 0, c.site, c.bytes);
    Bytes came(own.size());
    std::vector<RequestId> open;
    c.source = own.data();
    c.peer = g.self + 1;
    if (c.peer < g.size)
      open.push_back(*rank.exchange.start(c));
    c.op = Op::receive;
    c.peer = g.self - 1;
    c.result = came.data();
    if (c.peer >= 0)
      open.push_back(*rank.exchange.start(c));
    for (RequestId request : open)
      if (Status done = rank.exchange.wait(request); !done)
        return done.error().text();
    const bool isRight = c.peer < 0 || came == bytesOf(g.rank(c.peer), 0, c.site, c.bytes);
    return isRight ? "" : wrong(c, c.bytes);
  });
}

std::string allReduceMax(Rank &rank) {
  return overGroups(rank, Op::allReduceMax, [&](Collective c, const Group &g) {
    const int64_t count = c.bytes / 8;
    std::vector<int64_t> own(count), result(count), expected(count, INT64_MIN);
    const auto value = [&](int32_t from, int64_t i) { return static_cast<int64_t>(mixed(from, c.site, i)); };
    for (int64_t i = 0; i < count; ++i) {
      own[i] = value(rank.exchange.rank(), i);
      for (int32_t member = 0; member < g.size; ++member)
        expected[i] = std::max(expected[i], value(g.rank(member), i));
    }
    c.bytes = count * 8;
    std::vector<char> workspace(workspaceBytes(c.op, c.bytes, g.size));
    c.source = own.data();
    c.result = result.data();
    c.workspace = workspace.data();
    std::string found = run(rank, c);
    return found + (result == expected ? "" : wrong(c, c.bytes));
  });
}

/// Both sums, of `count` values a member in a reduce-scatter: bits, not values, are compared.
std::string sum(Rank &rank, Op op) {
  return overGroups(rank, op, [&](Collective c, const Group &g) {
    const int64_t count = std::min<int64_t>(c.bytes / 4, 5001), parts = op == Op::allReduceSum ? 1 : g.size;
    const int64_t first = op == Op::allReduceSum ? 0 : g.self * count;
    std::vector<float> own(count * parts), result(count), expected(count);
    for (int64_t i = 0; i < count * parts; ++i)
      own[i] = valueOf(rank.exchange.rank(), c.site, i);
    for (int64_t i = 0; i < count; ++i)
      expected[i] = treeOf(g, c.site, first + i, 0, g.size);
    c.bytes = count * 4;
    std::vector<char> workspace(workspaceBytes(c.op, c.bytes, g.size));
    const bool isInPlace = op == Op::allReduceSum && c.site % 2 == 0;
    c.source = own.data();
    c.result = isInPlace ? own.data() : result.data();
    c.workspace = workspace.data();
    std::string found = run(rank, c);
    const bool isEqual = count == 0 || std::memcmp(c.result, expected.data(), c.bytes) == 0;
    return found + (isEqual ? "" : wrong(c, c.bytes));
  });
}

std::string allReduceSum(Rank &rank) { return sum(rank, Op::allReduceSum); }
std::string reduceScatterSum(Rank &rank) { return sum(rank, Op::reduceScatterSum); }

/// How the rows of an all-to-all are spread.
enum class Spread { random, nothing, oneTakesAll, oneSendsAll };

/// The member that takes or sends all.
int32_t chosenOf(uint32_t site, const Group &g) { return static_cast<int32_t>(mixed(site, 1, 2) % g.size); }

/// Rows from one rank to another.
int64_t rowsOf(Spread spread, uint32_t site, int32_t from, int32_t to, const Group &g) {
  const int32_t chosen = g.rank(chosenOf(site, g));
  const int64_t count = static_cast<int64_t>(mixed(from, to, site) % 23);
  const bool isNone = spread == Spread::nothing || (spread == Spread::oneTakesAll && to != chosen) ||
                      (spread == Spread::oneSendsAll && from != chosen);
  return isNone || count < 5 ? 0 : count;
}

/// The buffers and rows of one ragged all-to-all; they stay where they are while it is in flight.
struct Ragged {
  Collective c;
  std::vector<int64_t> sent, sentOffsets, received, receivedOffsets, expectedRows;
  Bytes source, result, expected;

  Ragged(Rank &rank, Axis axis, int64_t rowBytes, Spread spread, bool isCapacity, Op op = Op::allToAllRows) {
    constexpr int64_t quota = 23;
    c = {op, axis, ++rank.site};
    c.bytes = rowBytes;
    const Group g = rank.exchange.group(axis);
    c.peer = chosenOf(c.site, g);
    for (int32_t i = 0; i < g.size; ++i) {
      const int32_t self = rank.exchange.rank(), peer = g.rank(i);
      sent.push_back(rowsOf(spread, c.site, self, peer, g));
      expectedRows.push_back(rowsOf(spread, c.site, peer, self, g));
      const bool isSilent = (op == Op::scatterRows && i != c.peer) || (op == Op::gatherRows && g.self != c.peer);
      received.push_back(isCapacity && (!isSilent || i == g.self) ? quota : expectedRows.back());
      sentOffsets.push_back(static_cast<int64_t>(source.size()) / rowBytes);
      receivedOffsets.push_back(static_cast<int64_t>(expected.size()) / rowBytes);
      const Bytes out = bytesOf(self, peer, c.site, sent.back() * rowBytes);
      const Bytes in = bytesOf(peer, self, c.site, expectedRows.back() * rowBytes);
      source.insert(source.end(), out.begin(), out.end());
      expected.insert(expected.end(), in.begin(), in.end());
      expected.resize((receivedOffsets.back() + received.back()) * rowBytes);
    }
    result.resize(expected.size());
    c.source = source.data();
    c.result = result.data();
    c.rows = {sent.data(), sentOffsets.data(), received.data(), receivedOffsets.data(), isCapacity};
  }
  std::string whatIsWrong() const { return result == expected && received == expectedRows ? "" : wrong(c, c.bytes); }
};

std::string raggedRows(Rank &rank) {
  std::string found;
  for (Axis axis : axes)
    for (Spread spread : {Spread::random, Spread::nothing, Spread::oneTakesAll, Spread::oneSendsAll})
      for (int64_t rowBytes : {1, 12, 2050})
        for (bool isCapacity : {false, true}) {
          Ragged ragged(rank, axis, rowBytes, spread, isCapacity);
          found += run(rank, ragged.c);
          found += ragged.whatIsWrong();
        }
  return found;
}

/// Those that one member alone sends, and those for it alone.
std::string rootedRows(Rank &rank) {
  std::string found;
  for (Axis axis : axes)
    for (auto [op, spread] : {std::pair{Op::scatterRows, Spread::oneSendsAll}, {Op::gatherRows, Spread::oneTakesAll}})
      for (int64_t rowBytes : {1, 12, 2050})
        for (bool isCapacity : {false, true}) {
          Ragged ragged(rank, axis, rowBytes, spread, isCapacity, op);
          found += run(rank, ragged.c);
          found += ragged.whatIsWrong();
        }
  return found;
}

/// Twelve at once, waited for in the reverse order.
std::string severalInFlight(Rank &rank) {
  std::string found;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Ragged>> several;
    std::vector<RequestId> open;
    for (int i = 0; i < 12; ++i) {
      several.push_back(std::make_unique<Ragged>(rank, axes[i % 9], 700, Spread::random, i % 2 == 0));
      open.push_back(*rank.exchange.start(several.back()->c));
    }
    for (int i = 11; i >= 0; --i) {
      Status done = rank.exchange.wait(open[i]);
      found += done ? several[i]->whatIsWrong() : done.error().text();
    }
  }
  return found;
}

/// 200 routings, on the whole world.
std::string randomRoutings(Rank &rank) {
  std::string found;
  for (int i = 0; i < 200; ++i) {
    const auto spread = static_cast<Spread>(mixed(i, 3, 4) % 4);
    Ragged ragged(rank, Axis::world, 1 + static_cast<int64_t>(mixed(i, 5, 6) % 900), spread, i % 3 == 0);
    found += run(rank, ragged.c);
    found += ragged.whatIsWrong();
  }
  return found;
}

/// One message beyond what a transport sends in one piece.
std::string largeMessage(Rank &rank) {
  Collective c{Op::broadcast, Axis::dp, ++rank.site};
  c.bytes = (int64_t(64) << 20) + 5;
  Bytes sent(c.bytes), came(c.bytes);
  std::iota(sent.begin(), sent.end(), 0);
  c.source = sent.data();
  c.result = came.data();
  std::string found = run(rank, c);
  return found + (rank.exchange.group(Axis::dp).self == 0 || sent == came ? "" : wrong(c, c.bytes));
}

} // namespace

const std::vector<Case> &conformanceCases() {
  static const std::vector<Case> cases = {{"AllGather", allGather},
                                          {"AllToAll", allToAll},
                                          {"Counts", counts},
                                          {"Broadcast", broadcast},
                                          {"SendReceive", sendReceive},
                                          {"AllReduceMax", allReduceMax},
                                          {"AllReduceSum", allReduceSum},
                                          {"ReduceScatterSum", reduceScatterSum},
                                          {"RaggedRows", raggedRows},
                                          {"RootedRows", rootedRows},
                                          {"SeveralInFlight", severalInFlight},
                                          {"RandomRoutings", randomRoutings},
                                          {"LargeMessage", largeMessage}};
  return cases;
}

const std::vector<int32_t> &conformanceSizes() {
  static const std::vector<int32_t> sizes = {1, 2, 3, 4, 6, 8};
  return sizes;
}

Grid conformanceGrid(int32_t ranks) {
  //                  tp dp etp ep pp replicas perNode
  switch (ranks) {
  case 2:
    return {1, 2, 1, 2, 1, 1, 1};
  case 3:
    return {1, 3, 1, 3, 1, 1, 3};
  case 4:
    return {2, 2, 1, 4, 1, 1, 2};
  case 6:
    return {1, 6, 2, 3, 1, 1, 2};
  case 8:
    return {2, 2, 1, 4, 1, 2, 2};
  default:
    return {};
  }
}

} // namespace k2c::test
