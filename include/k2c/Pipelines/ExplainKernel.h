//===- ExplainKernel.h - One kernel of a bundle, in every form ------------===//
//
// The bundle's model is compiled again as its manifest states (as k2c predict does); the assembly is that of its
// program.so.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_EXPLAINKERNEL_H
#define K2C_PIPELINES_EXPLAINKERNEL_H

#include "k2c/Cluster/Topology.h"
#include <optional>
#include <string>
#include <vector>

namespace k2c {

struct ExplainKernelOptions {
  std::string bundle;
  std::string checkpoint; ///< the .onnx file that it was compiled from; "": it has its config.json
  std::string kernel;     ///< its name, or the beginning of one kernel's name
  std::string topology;   ///< the machine of the roofline; "": of a GPU's program the bundle's own, else this one
  bool isWhole = false;   ///< the assembly of all of the function, not of its main loop
};

/// All launches of a kernel in a step, against the peak rates of a machine.
struct KernelRoof {
  std::string step;     ///< "prefill" or "decode"
  int64_t tokens = 0;   ///< new ones of the step
  int64_t context = 0;  ///< cached before it
  int64_t launches = 0; ///< 0: the kernel has no rows in this step
  Flops flops;          ///< of all launches
  Bytes bytes;          ///< weights and cache, which come from memory
  Bytes activations;    ///< read and written, which stay in caches
  Seconds arithmetic;   ///< that `flops` take at least
  Seconds memory;       ///< that `bytes` take at least
};

struct ExplainedKernel {
  std::string name;
  std::string symbol;                  ///< of its function in program.so
  std::vector<std::string> sharing;    ///< other kernels that run the same code
  std::string description;             ///< its kern.func
  std::vector<std::string> remarks;    ///< of the bundle, those that name it
  std::string machine;                 ///< the topology's name
  int64_t cores = 0;                   ///< of the machine
  Sourced<FlopRate> arithmetic;        ///< peak of all cores
  Sourced<Bandwidth> memory;           ///< likewise
  std::vector<KernelRoof> roofs;       ///< of the steps that the plan predicts
  std::string code;                    ///< before LLVM: vector, scf, arith
  std::optional<std::string> assembly; ///< none: llvm-objdump-22 is not on the PATH; "": there is no loop
  bool isPtx = false;                  ///< whether `assembly` is the PTX of a GPU's kernel, whole
  int64_t instructions = 0;            ///< of `assembly`
  int64_t multiplyAdds = 0;            ///< of these, fused multiply-adds and dot products of vectors
};

/// Errors: those of predictStep for a bundle; a topology that is not one machine; no kernel of this name, with the
/// nearest ones, or several that begin so; a program.so without the kernel.
Expected<ExplainedKernel> explainKernel(const ExplainKernelOptions &options);

} // namespace k2c

#endif // K2C_PIPELINES_EXPLAINKERNEL_H
