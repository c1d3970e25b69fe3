//===- CheckpointTensors.h - A safetensors checkpoint for the packer --------===//
#ifndef K2C_WEIGHTS_CHECKPOINTTENSORS_H
#define K2C_WEIGHTS_CHECKPOINTTENSORS_H

#include "k2c/Model/Safetensors.h"
#include "k2c/Weights/TensorSource.h"

namespace k2c {

/// The tensors of an open checkpoint, whose files it shares.
class CheckpointTensors : public TensorSource {
public:
  explicit CheckpointTensors(Checkpoint checkpoint) : checkpoint(std::move(checkpoint)) {}

  Expected<StoredTensor> find(const std::string &name) const override;
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override;
  TensorPlace place(const std::string &name) const override;
  std::vector<PieceFile> files() const override;

private:
  Checkpoint checkpoint;
};

} // namespace k2c

#endif // K2C_WEIGHTS_CHECKPOINTTENSORS_H
