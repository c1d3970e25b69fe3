// Who brings a chunk into memory hashes it at once, while others read: with one node. With several, pages must first
// lie where their workers are, and a chunk may hold parts of two nodes: so all is read, then compared.
#include "device/cpu/WeightCheck.h"
#include "base/Hash.h"
#include <algorithm>

namespace k2c::runtime {

WeightCheck::WeightCheck(const Weights &weights) : weights(weights) {
  size_t chunks = 0;
  for (size_t file = 0; file < weights.mappedFiles().size(); ++file) {
    if (const void *base = weights.mappedFiles()[file].data())
      files.emplace_back(static_cast<const std::byte *>(base), file);
    firstChunks.push_back(chunks);
    chunks += weights.chunkHashes(file).size();
  }
  std::sort(files.begin(), files.end());
  taken.reset(new std::atomic<bool>[chunks]());
  wrong = chunks;
}

void WeightCheck::compare(const std::byte *chunk) {
  const auto after = std::upper_bound(files.begin(), files.end(), chunk,
                                      [](const std::byte *at, const auto &file) { return at < file.first; });
  const auto &[base, file] = after[-1];
  const size_t number = static_cast<size_t>((chunk - base) / hugePageBytes);
  if (taken[firstChunks[file] + number].exchange(true, std::memory_order_relaxed))
    return;
  const int64_t bytes = std::min(hugePageBytes, weights.mappedFiles()[file].size() - (chunk - base));
  const uint64_t hash = hashOf(chunk, static_cast<size_t>(bytes));
  if (hash == weights.chunkHashes(file)[number])
    return;
  std::lock_guard<std::mutex> hold(finding);
  if (firstChunks[file] + number < wrong) {
    wrong = firstChunks[file] + number;
    wrongHash = hash;
  }
}

void WeightCheck::compareRest(const WorkerPlace &place, int32_t worker, int32_t workers) {
  int64_t turn = 0;
  const int64_t first = worker - place.index;
  weights.visitOwn(first, first + place.count, workers, [&](const std::byte *base, int64_t begin, int64_t end) {
    for (int64_t at = (begin + hugePageBytes - 1) / hugePageBytes * hugePageBytes; at < end; at += hugePageBytes)
      if (turn++ % place.count == place.index)
        compare(base + at);
  });
  turn = 0;
  for (const MappedFile &file : weights.mappedFiles())
    for (int64_t at = 0; at < file.size(); at += hugePageBytes)
      if (place.owns(turn++))
        compare(static_cast<const std::byte *>(file.data()) + at);
}

Status WeightCheck::result() const {
  const auto after = std::upper_bound(firstChunks.begin(), firstChunks.end(), wrong);
  if (after == firstChunks.begin())
    return {};
  const size_t file = static_cast<size_t>(after - firstChunks.begin()) - 1, number = wrong - firstChunks[file];
  const std::vector<uint64_t> &hashes = weights.chunkHashes(file);
  if (number >= hashes.size())
    return {};
  const MappedFile &mapped = weights.mappedFiles()[file];
  const int64_t begin = static_cast<int64_t>(number) * hugePageBytes;
  return Error{K2RT_INVALID_BUNDLE, mapped.path(),
               "bytes " + std::to_string(begin) + " to " +
                   std::to_string(std::min(begin + hugePageBytes, mapped.size())) + " hash to " + hashText(wrongHash) +
                   ", the index says " + hashText(hashes[number]),
               "k2c pack with the checkpoint writes it again, or compile the bundle again"};
}

} // namespace k2c::runtime
