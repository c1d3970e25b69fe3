// Cluster descriptions of others: NCCL's XML, Slurm's two files, nvidia-smi's matrix.
#include "k2c/Cluster/Import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const k2c::Expected<k2c::Topology> like = k2c::loadTopology("4x8-h100");
  if (!like)
    __builtin_trap();
  (void)bool(k2c::importTopology({reinterpret_cast<const char *>(data), size}, "f", *like));
  return 0;
}
