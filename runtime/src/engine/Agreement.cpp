// Every rank has what all have said, and comes to the same result.
#include "engine/Agreement.h"
#include "base/Hash.h"
#include "base/SmallFile.h"
#include "base/Utf8.h"
#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace k2c::runtime {

namespace {

constexpr std::array<const char *, 4> hashed = {"manifest.json", "program.so", "placement.json", "files.json"};

template <size_t n> std::string textOf(const std::array<char, n> &text) {
  return shortened(std::string(text.data(), ::strnlen(text.data(), n)));
}

template <size_t n> void put(const std::string &text, std::array<char, n> &into) {
  std::copy_n(text.data(), std::min(text.size(), n), into.data());
}

std::string nameOf(const std::vector<RankPresence> &all, int32_t rank) {
  return "rank " + std::to_string(rank) + " (host " + textOf(all[rank].host) + ")";
}

bool areTogether(const RankPresence &a, const RankPresence &b) { return a.host == b.host && a.boot == b.boot; }

/// What both ranks have a hash of is the same. `what`: in a message.
Status expectSame(const std::vector<RankPresence> &all, int32_t rank, int32_t other, const char *what, uint64_t own,
                  uint64_t others, const char *remedy = "give every host the same bundle") {
  if (own == others)
    return {};
  return Error{K2RT_INVALID_BUNDLE, nameOf(all, rank),
               std::string(what) + " hashes to " + hashText(own) + ", that of " + nameOf(all, other) + " to " +
                   hashText(others),
               remedy};
}

Status checkBundles(const std::vector<RankPresence> &all) {
  const int32_t ranks = static_cast<int32_t>(all.size());
  int32_t whole = 0; // the first that has all weights
  while (whole < ranks && all[whole].allWeights == 0)
    ++whole;
  for (int32_t rank = 1; rank < ranks; ++rank) {
    const RankPresence &own = all[rank], &first = all[0];
    for (size_t i = 0; i < hashed.size(); ++i)
      if (Status same = expectSame(all, rank, 0, hashed[i], own.hashes[i], first.hashes[i]); !same)
        return same;
    if (Status same = expectSame(all, rank, 0, "what --placement names", own.placements, first.placements,
                                 "give every host the same file");
        !same)
      return same;
    if (Status same = expectSame(all, rank, 0, "what all ranks have of the weights", own.commonWeights,
                                 first.commonWeights, "pack all hosts from one checkpoint");
        !same)
      return same;
    if (own.allWeights)
      if (Status same = expectSame(all, rank, whole, weightIndexFile, own.allWeights, all[whole].allWeights); !same)
        return same;
  }
  return {};
}

/// Ranks of one node of the plan are on one host, those of another on another; or all are on one.
Status checkNodes(const std::vector<RankPresence> &all, const RankFacts &ranks) {
  const auto isOnFirstHost = [&](const RankPresence &one) { return areTogether(one, all[0]); };
  if (std::all_of(all.begin(), all.end(), isOnFirstHost))
    return {};
  const auto perNode = static_cast<int32_t>(ranks.count / ranks.nodes);
  for (int32_t rank = 1; rank < static_cast<int32_t>(all.size()); ++rank)
    for (int32_t before = 0; before < rank; ++before)
      if (const bool isOneNode = rank / perNode == before / perNode; areTogether(all[rank], all[before]) != isOneNode)
        return Error{K2RT_INVALID_ARGUMENT, nameOf(all, rank),
                     std::string("is on ") + (isOneNode ? "another host than " : "the host of ") + nameOf(all, before) +
                         ", the plan has them on " + (isOneNode ? "one node" : "two nodes"),
                     "name a host for each of the " + std::to_string(ranks.nodes) +
                         " nodes: DIR/launch.sh --hosts FILE"};
  return {};
}

} // namespace

RankPresence presenceOf(const FileList &files, const Manifest &manifest, const std::vector<PlacementText> &placements,
                        const PackedRanks &packed) {
  RankPresence own;
  std::string named;
  for (const PlacementText &each : placements)
    named += std::to_string(each.fromStep) + "\n" + each.text;
  own.hashes = {files.hashOf("manifest.json"), files.hashOf("program.so"), files.hashOf(manifest.ranks.placement.file),
                files.hashBut({weightIndexFile, packedRanksFile})};
  own.placements = named.empty() ? 0 : hashOf(named.data(), named.size());
  own.commonWeights = packed.common;
  own.allWeights = packed.ranks.empty() ? files.hashOf(weightIndexFile) : 0;
  ::gethostname(own.host.data(), own.host.size());
  put(readSmallFile("/proc/sys/kernel/random/boot_id"), own.boot);
  return own;
}

Expected<HostPlace> placeAmong(const std::vector<RankPresence> &all, const RankFacts &ranks, int32_t own) {
  if (Status same = checkBundles(all); !same)
    return same.takeError();
  if (ranks.count != static_cast<int64_t>(all.size()))
    return Error{K2RT_INVALID_ARGUMENT, "ranks",
                 std::to_string(all.size()) + " were started, the bundle has " + std::to_string(ranks.count),
                 "start it with DIR/launch.sh"};
  if (Status right = checkNodes(all, ranks); !right)
    return right.takeError();
  HostPlace place{0, 0};
  for (int32_t rank = 0; rank < static_cast<int32_t>(all.size()); ++rank) {
    const bool isHere = areTogether(all[rank], all[own]);
    place.index += isHere && rank < own;
    place.ranks += isHere;
  }
  return place;
}

Expected<HostPlace> agree(Exchange &exchange, const RankPresence &own, const RankFacts &ranks) {
  std::vector<RankPresence> all(exchange.ranks());
  Collective gather{Op::allGather, Axis::world, 0};
  gather.source = &own;
  gather.result = all.data();
  gather.bytes = sizeof own;
  gather.isPatient = gather.isControl = true;
  if (Status done = exchange.run(gather); !done)
    return done.takeError();
  return placeAmong(all, ranks, exchange.rank());
}

} // namespace k2c::runtime
