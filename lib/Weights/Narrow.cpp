//===- Narrow.cpp - f32 weights whose numbers are all bf16's --------------===//
//
// bf16 has the upper half of the bits of f32. So a number is bf16's where the lower half is 0, and a look at weights is
// one pass over that half, which ends for a family at the first number that is not. Whoever reads a narrowed tensor
// looks again, for the file may be another one by then.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/Narrow.h"

#include "StoredElements.h"
#include "base/Utf8.h"
#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace k2c {

using namespace weights;

namespace {

/// Index of the first of `count` numbers in f32 that has bits below those of bf16; none: bf16 has them all.
std::optional<int64_t> firstBeyondBf16(const char *numbers, int64_t count) {
  return firstWhere<uint32_t>(numbers, count, [](uint32_t bits) { return (bits & 0xFFFF) != 0; });
}

bool isWide(const WeightFamily &family) { return family.dtype == DType::F32 && !family.blocks && !family.microScales; }

class FamilyFinder {
public:
  FamilyFinder(const TensorSource &tensors, const std::function<void(int64_t, int64_t)> &progress)
      : tensors(tensors), progress(progress) {}

  Expected<std::vector<std::string>> run(const ModelSpec &spec) {
    std::vector<const WeightFamily *> wide;
    for (const WeightFamily &family : spec.weights)
      if (isWide(family)) {
        wide.push_back(&family);
        total += int64_t(family.storedBytes().value);
      }
    std::vector<std::string> out;
    for (const WeightFamily *family : wide) {
      const int64_t end = done + int64_t(family->storedBytes().value);
      isOfBf16 = true;
      if (Status status = family->visitTensors([&](const std::string &name) { return look(name); }); !status)
        return status.takeError();
      if (isOfBf16)
        out.push_back(family->id);
      report(end);
    }
    return out;
  }

private:
  /// Clears `isOfBf16`, and reads no more of the family, at a number that bf16 has not.
  Status look(const std::string &name) {
    const Expected<StoredTensor> stored = tensors.find(name);
    if (!stored)
      return stored.error();
    isOfBf16 = isOfBf16 && stored->type == DType::F32;
    const int64_t bytes = bytesOf(*stored);
    for (int64_t at = 0; at < bytes && isOfBf16; at += pieceBytes) {
      piece.resize(size_t(std::min(pieceBytes, bytes - at)));
      if (Status status = tensors.read(name, at, piece.data(), int64_t(piece.size())); !status)
        return status;
      isOfBf16 = !firstBeyondBf16(piece.data(), int64_t(piece.size()) / 4);
      report(done + int64_t(piece.size()));
    }
    return {};
  }

  void report(int64_t bytes) {
    done = bytes;
    if (progress)
      progress(done, total);
  }

  const TensorSource &tensors;
  const std::function<void(int64_t, int64_t)> &progress;
  std::vector<char> piece;
  bool isOfBf16 = true; ///< what was read of the family
  int64_t done = 0, total = 0;
};

class NarrowedTensors : public TensorSource {
public:
  NarrowedTensors(const ModelSpec &spec, std::shared_ptr<const TensorSource> from) : from(std::move(from)) {
    for (const std::string &id : spec.narrowed)
      (void)spec.find(id)->visitTensors([&](const std::string &name) {
        narrowed.insert(name);
        return Status::success();
      });
  }

  Expected<StoredTensor> find(const std::string &name) const override {
    Expected<StoredTensor> found = from->find(name);
    if (found && narrowed.count(name) > 0) {
      if (found->type != DType::F32)
        return Error{"tensor '" + shortened(name) + "'",
                     "is stored as " + std::string(k2c::name(found->type)) +
                         ", and was f32 when it was narrowed to bf16",
                     "use what was compiled, or compile again"};
      found->type = DType::BF16;
    }
    return found;
  }

  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override {
    if (narrowed.count(name) == 0)
      return from->read(name, offset, out, count);
    std::vector<char> wide(size_t(std::min(pieceBytes, 2 * count)));
    for (int64_t at = 0; at < count; at += int64_t(wide.size()) / 2) {
      wide.resize(size_t(std::min(pieceBytes, 2 * (count - at))));
      const int64_t numbers = int64_t(wide.size()) / 4;
      if (Status status = from->read(name, 2 * (offset + at), wide.data(), int64_t(wide.size())); !status)
        return status;
      if (const std::optional<int64_t> first = firstBeyondBf16(wide.data(), numbers))
        return Error{"tensor '" + shortened(name) + "'",
                     "element " + std::to_string((offset + at) / 2 + *first) +
                         " is a number that bf16 would round, and was none when the weights were narrowed",
                     "use what was compiled, or compile again"};
      for (int64_t i = 0; i < numbers; i++)
        std::memcpy(out + at + 2 * i, wide.data() + 4 * i + 2, 2);
    }
    return {};
  }

  TensorPlace place(const std::string &name) const override { return from->place(name); }
  std::vector<PieceFile> files() const override { return from->files(); }

private:
  std::shared_ptr<const TensorSource> from;
  std::unordered_set<std::string> narrowed;
};

} // namespace

Expected<std::vector<std::string>> familiesOfBf16(const ModelSpec &spec, const TensorSource &tensors,
                                                  const std::function<void(int64_t, int64_t)> &progress) {
  return FamilyFinder(tensors, progress).run(spec);
}

bool seemOfBf16(const ModelSpec &spec, const TensorSource &tensors) {
  const auto bytesOf = [](const WeightFamily &family) { return isWide(family) ? family.storedBytes().value : 0; };
  const auto largest =
      std::max_element(spec.weights.begin(), spec.weights.end(),
                       [&](const WeightFamily &a, const WeightFamily &b) { return bytesOf(a) < bytesOf(b); });
  if (largest == spec.weights.end() || bytesOf(*largest) == 0)
    return false;
  const std::string name = largest->tensorName(largest->layers.empty() ? 0 : largest->layers[0].begin);
  const Expected<StoredTensor> stored = tensors.find(name);
  if (!stored || stored->type != DType::F32)
    return false;
  char numbers[4096];
  const int64_t count = std::min(largest->elements(), int64_t(sizeof numbers) / 4);
  return tensors.read(name, 0, numbers, count * 4) && !firstBeyondBf16(numbers, count);
}

Status narrow(const std::vector<std::string> &ids, const std::string &place, ModelSpec &spec,
              std::shared_ptr<const TensorSource> &tensors) {
  for (const std::string &id : ids) {
    const auto family = std::find_if(spec.weights.begin(), spec.weights.end(),
                                     [&](const WeightFamily &one) { return one.id == id && isWide(one); });
    if (family == spec.weights.end())
      return Error{place, "has no weights '" + shortened(id) + "' in f32, and the compile has narrowed some",
                   "name what was compiled, or compile again"};
    family->dtype = DType::BF16;
  }
  spec.narrowed = ids;
  if (tensors && !ids.empty())
    tensors = std::make_shared<NarrowedTensors>(spec, std::move(tensors));
  return {};
}

} // namespace k2c
