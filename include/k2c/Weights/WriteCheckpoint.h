//===- WriteCheckpoint.h - Tensors as a safetensors checkpoint --------------===//
#ifndef K2C_WEIGHTS_WRITECHECKPOINT_H
#define K2C_WEIGHTS_WRITECHECKPOINT_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/TensorSource.h"
#include <functional>

namespace k2c {

/// A tensor that is written, and the one of the source whose bytes it has.
struct WrittenTensor {
  std::string name;
  std::string source;
  StoredTensor stored; ///< of both
};

/// Every tensor of `published`, layer by layer, from those that `found` calls otherwise: roles, layers, experts and
/// alternatives are the same (PublishedForm.h).
std::vector<WrittenTensor> writtenTensors(const ModelSpec &published, const ModelSpec &found);

struct WriteCheckpointOptions {
  /// Of the tensors of one file; one that is larger has a file of its own. Published checkpoints have files of 5 GB.
  int64_t maxFileBytes = 5'000'000'000;
  std::function<void(int64_t done, int64_t total)> progress = nullptr; ///< bytes of tensors
};

/// Writes the tensors into `folder`: one model.safetensors, or several files with their index. They are read and
/// written in pieces. Error: a tensor that the source has otherwise, a file system without room, a file that cannot be
/// read or written; what is written by then stays.
Status writeCheckpoint(const std::string &folder, const std::vector<WrittenTensor> &tensors, const TensorSource &source,
                       const WriteCheckpointOptions &options = {});

} // namespace k2c

#endif // K2C_WEIGHTS_WRITECHECKPOINT_H
