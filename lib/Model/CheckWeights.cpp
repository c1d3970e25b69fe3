//===- CheckWeights.cpp - a checkpoint against its model ------------------===//
//
// Two walks: over the names the families generate, which marks tensors as
// used; then over the tensors that nobody marked, which must be ignorable.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/CheckWeights.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"

#include <charconv>
#include <functional>
#include <optional>

using namespace k2c;

namespace {

std::string withLayer(std::string pattern, int64_t layer) {
  if (size_t at = pattern.find("{layer}"); at != std::string::npos)
    pattern.replace(at, 7, std::to_string(layer));
  return pattern;
}

/// Whether `name` is the pattern's name, or begins with it where it ends in *.
bool matches(const std::string &pattern, const std::string &name) {
  if (pattern.empty() || pattern.back() != '*')
    return name == pattern;
  return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

/// The layer that `name` has where the pattern says {layer}; 0 for a pattern without one.
std::optional<int64_t> layerOf(const std::string &pattern, const std::string &name) {
  size_t at = pattern.find("{layer}");
  if (at == std::string::npos)
    return 0;
  int64_t layer = 0;
  if (at >= name.size() || name.compare(0, at, pattern, 0, at) != 0 ||
      std::from_chars(name.data() + at, name.data() + name.size(), layer).ec != std::errc())
    return std::nullopt;
  return layer;
}

bool isIgnorable(const ModelSpec &spec, const Checkpoint &checkpoint, const std::string &name) {
  for (const IgnoredTensors &rule : spec.ignoredTensors) {
    std::optional<int64_t> layer = layerOf(rule.pattern, name);
    if (layer && *layer >= rule.layers.begin && *layer < rule.layers.end &&
        matches(withLayer(rule.pattern, *layer), name) &&
        (rule.onlyWith.empty() || checkpoint.find(withLayer(rule.onlyWith, *layer))))
      return true;
  }
  return false;
}

class Checker {
public:
  Checker(ModelSpec &spec, const Checkpoint &checkpoint)
      : spec(spec), checkpoint(checkpoint), isUsed(checkpoint.tensors().size()) {}

  Status run() {
    for (WeightFamily &family : spec.weights)
      if (Status status = checkFamily(family); !status)
        return status;
    for (size_t i = 0; i < isUsed.size(); ++i) {
      const TensorInfo &tensor = checkpoint.tensors()[i];
      if (!isUsed[i] && !isIgnorable(spec, checkpoint, tensor.name))
        return Error{checkpoint.files()[tensor.fileIndex],
                     "tensor '" + shortened(tensor.name) + "' " + shapeText(tensor.shape) + " is not part of a " +
                         spec.modelType + " model of " + std::to_string(spec.layerCount()) + " layers",
                     "config.json and weights must be of the same model"};
    }
    return Status::success();
  }

private:
  Status checkFamily(WeightFamily &family) {
    const TensorInfo *first = nullptr;
    bool isMixed = false;
    Status status = family.visitTensors([&](const std::string &name) -> Status {
      const TensorInfo *tensor = checkpoint.find(name);
      if (!tensor)
        return Error{folder(), "tensor '" + shortened(name) + "' is missing",
                     "the checkpoint is incomplete: download it again"};
      isUsed[static_cast<size_t>(tensor - checkpoint.tensors().data())] = true;
      if (!first)
        first = tensor;
      isMixed = isMixed || tensor->dtype != first->dtype;
      return checkTensor(family, *tensor);
    });
    if (status && first && !family.blocks) // f32 holds every one of them exactly
      family.dtype = isMixed ? DType::F32 : first->dtype;
    return status;
  }

  Status checkTensor(const WeightFamily &family, const TensorInfo &tensor) {
    const std::string &file = checkpoint.files()[tensor.fileIndex];
    std::string what = "tensor '" + shortened(tensor.name) + "' ";
    if (tensor.shape != family.shape)
      return Error{file,
                   what + "has shape " + shapeText(tensor.shape) + ", config.json asks for " + shapeText(family.shape),
                   "config.json and weights must be of the same model"};
    if (family.blocks)
      return checkBlocks(*family.blocks, tensor);
    if (tensor.dtype == DType::F8E4M3 || tensor.dtype == DType::F8E5M2)
      return Error{file, what + "is FP8, which quantization_config of config.json does not say",
                   "take config.json from the published model, or convert the tensor to bf16"};
    if (tensor.dtype != DType::F32 && tensor.dtype != DType::BF16 && tensor.dtype != DType::F16)
      return Error{file,
                   what + "has element type " + std::string(k2c::name(tensor.dtype)) +
                       ", a weight must be f32, bf16 or f16",
                   "config.json and weights must be of the same model"};
    return Status::success();
  }

  /// A tensor in scaled blocks, and its scales.
  Status checkBlocks(const BlockScales &blocks, const TensorInfo &tensor) {
    const std::string &file = checkpoint.files()[tensor.fileIndex];
    std::string what = "tensor '" + shortened(tensor.name) + "' ";
    if (tensor.dtype != blocks.stored)
      return Error{file,
                   what + "has element type " + std::string(k2c::name(tensor.dtype)) +
                       ", quantization_config of config.json says " + std::string(k2c::name(blocks.stored)),
                   "remove quantization_config if the weights were converted"};
    const TensorInfo *scales = checkpoint.find(tensor.name + scaleSuffix);
    if (!scales)
      return Error{file, what + "has no scales: tensor '" + shortened(tensor.name + scaleSuffix) + "' is missing",
                   "the checkpoint is incomplete: download it again"};
    isUsed[static_cast<size_t>(scales - checkpoint.tensors().data())] = true;
    const std::string &scalesFile = checkpoint.files()[scales->fileIndex];
    what = "tensor '" + shortened(scales->name) + "' ";
    if (scales->dtype != DType::F32)
      return Error{scalesFile, what + "has element type " + std::string(k2c::name(scales->dtype)) + ", scales are f32",
                   "take the weights from the published model"};
    std::vector<int64_t> expected = {(tensor.shape[0] + blocks.rows - 1) / blocks.rows,
                                     (tensor.shape[1] + blocks.columns - 1) / blocks.columns};
    if (scales->shape != expected)
      return Error{scalesFile,
                   what + "has shape " + shapeText(scales->shape) + ", blocks of " +
                       shapeText({blocks.rows, blocks.columns}) + " of " + shapeText(tensor.shape) + " have " +
                       shapeText(expected) + " scales",
                   "config.json and weights must be of the same model"};
    return Status::success();
  }

  /// Where a missing tensor would be.
  std::string folder() const {
    if (checkpoint.files().size() == 1)
      return checkpoint.files()[0];
    if (checkpoint.files().empty())
      return spec.name;
    const std::string &file = checkpoint.files()[0];
    size_t slash = file.rfind('/');
    return slash == std::string::npos ? "." : file.substr(0, slash);
  }

  ModelSpec &spec;
  const Checkpoint &checkpoint;
  std::vector<bool> isUsed;
};

} // namespace

Status k2c::checkWeights(ModelSpec &spec, const Checkpoint &checkpoint) { return Checker(spec, checkpoint).run(); }
