//===- Sass.h - The machine code of a GPU, as text ---------------------------===//
#ifndef K2C_TARGET_SASS_H
#define K2C_TARGET_SASS_H

#include "base/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// How often each instruction is there, by the name of what it does: FFMA, LDG; of PTX fma, ld.global.
using InstructionMix = std::map<std::string, int64_t>;

/// All of them.
int64_t instructionsOf(const InstructionMix &mix);

/// Those that multiply and add: FFMA, DFMA, HMMA and the like.
int64_t multiplyAddsOf(const InstructionMix &mix);

/// Bytes of shared memory that the loads and stores of a warp ask for; names are in full.
int64_t sharedBytesOf(const InstructionMix &loop);

/// Whether products of tensor cores are among them, whose cycles are not known here.
bool hasTensorProducts(const InstructionMix &loop);

/// Cycles that L1 takes, which shared memory is part of, where each of the four schedulers of a multiprocessor has a
/// warp in the loop: 128 bytes a cycle for all of them. Each issues one instruction a cycle.
int64_t l1CyclesOf(const InstructionMix &loop);

/// The nvdisasm of $K2C_NVDISASM, else the first in $PATH, $CUDA_HOME/bin, /usr/local/cuda/bin; none: there is no such
/// file. NVIDIA's toolkit has it, as a package of its own.
std::optional<std::string> findNvdisasm();

/// What it prints of the cubin at `path`.
Expected<std::string> sassOf(const std::string &nvdisasm, const std::string &path);

/// Of what nvdisasm printed, of a whole PTX text.
InstructionMix mixOfSass(const std::string &sass);
InstructionMix mixOfPtx(const std::string &ptx);

/// The loops in which a kernel spends its time: of those that have no other inside, the one with the most multiply-adds
/// (FFMA, DFMA, HMMA and the like) and all with at least half as many; where none has any, the same by instructions.
/// Names are in full: BRA.U.ANY, LDL.128.
std::vector<InstructionMix> mainLoops(const std::string &sass);

} // namespace k2c

#endif // K2C_TARGET_SASS_H
