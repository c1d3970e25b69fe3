//===- Machine.h - Runs kernels of a PTX text -----------------------------===//
//
// A kernel is executed instruction by instruction as the PTX ISA says, 32 lanes at a time. What the ISA leaves open
// (which warp goes first, when a copy arrives) is drawn from a seed; what it leaves undefined ends the launch with an
// error that names kernel, line, CTA and warp. No time is modelled: instructions, bytes and conflicts are counted.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PTX_MACHINE_H
#define K2C_PTX_MACHINE_H

#include "k2c/Ptx/ByteSet.h"
#include "k2c/Ptx/Module.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace k2c::ptx {

struct Program;
class Machine;

/// An entry function whose instructions are all understood.
class Kernel {
public:
  /// The entry `name` of `module`, whose variables in .global and .const are at `addresses`; an error names the first
  /// instruction that is not supported, or has operands that it cannot have.
  static Expected<Kernel> decode(const Module &module, std::string_view name,
                                 const std::map<std::string, uint64_t> &addresses = {});

  Kernel(Kernel &&) noexcept;
  Kernel &operator=(Kernel &&) noexcept;
  ~Kernel();

  const Program &program() const { return *decoded; }
  /// As the text has it: its parameters, and what it says of launches.
  const Function &function() const;
  /// Static shared memory of a CTA, local memory of a thread.
  uint64_t sharedBytes() const;
  uint64_t localBytes() const;

private:
  explicit Kernel(std::unique_ptr<Program> decoded);
  std::unique_ptr<Program> decoded;
};

/// What addresses of .global mean: ranges of this process's memory. An address is the address here.
class GlobalMemory {
public:
  struct Range {
    std::byte *data;
    uint64_t bytes;
    std::string name; ///< for messages
    ByteSet written;
    uint32_t owner = 0; ///< whose memory it is: below 64
  };

  /// Kernels may use `bytes` bytes at `data` until remove(data). Reading what was never written is an error, unless
  /// `isWritten`.
  void add(void *data, uint64_t bytes, std::string name, bool isWritten, uint32_t owner = 0);
  void remove(void *data);
  /// The host has written `bytes` bytes at `data`, which lie within a range.
  void markWritten(const void *data, uint64_t bytes);

  /// The range that holds all of it; null: none does.
  Range *find(uint64_t address, uint64_t bytes);
  /// From now on only ranges of these owners are found, a bit each.
  void show(uint64_t owners) { shown = owners; }

private:
  std::map<uint64_t, Range> ranges; ///< by first address
  uint64_t shown = ~uint64_t(0);    ///< owners
};

struct Launch {
  Extent grid{1, 1, 1};                 ///< CTAs
  Extent block{1, 1, 1};                ///< threads of a CTA
  Extent cluster{0, 0, 0};              ///< CTAs of a cluster; 0: as the kernel says
  uint64_t sharedBytes = 0;             ///< of extern .shared
  std::vector<const void *> parameters; ///< a value each, of the parameter's bytes
};

struct Options {
  uint64_t seed = 1;
  uint32_t residentCtas = 16;                    ///< that run at a time, at most; a cluster runs whole
  bool isStrict = false;                         ///< whether races between threads are errors
  bool isTrafficCounted = false;                 ///< whether Counts has traffic
  bool isByWarp = false;                         ///< whether wgmma ends for each warp apart, and not for its warpgroup
  uint64_t idleInstructions = uint64_t(1) << 26; ///< in a row that change nothing: the kernel does not end
  uint64_t maxInstructions = ~uint64_t(0);       ///< of all warps
};

/// What an instruction is for. A generic load or store counts as one of global memory.
enum class InstructionClass : uint8_t {
  F32,        ///< arithmetic and comparisons of f32
  OtherFloat, ///< those of f16, bf16 and f64
  Integer,    ///< those of integers, and logic
  Conversion,
  Move,    ///< mov, addresses, parameters
  Special, ///< roots, reciprocals, exponentials, ..
  Control,
  SharedLoad,
  SharedStore,
  GlobalLoad,
  GlobalStore,
  Local,
  Atomic,
  Barrier,  ///< barriers and fences
  Copy,     ///< that are asynchronous
  Tensor,   ///< products of matrices, their fences and waits
  Exchange, ///< between lanes of a warp
  Other,
};
constexpr size_t instructionClasses = 18;

/// Accesses of warps to a memory.
struct Traffic {
  uint64_t requests = 0;  ///< instructions of warps
  uint64_t bytes = 0;     ///< that lanes asked for
  uint64_t units = 0;     ///< sectors of 32 bytes of global memory, or wavefronts of shared memory
  uint64_t conflicts = 0; ///< wavefronts more than banks without conflicts would take
};

struct Counts {
  uint64_t instructions = 0; ///< of warps
  uint64_t lanes = 0;        ///< of them
  std::array<uint64_t, instructionClasses> byClass{};
  uint64_t divergentBranches = 0; ///< at which lanes of a warp part
  uint64_t multiplyAdds = 0;      ///< of products of matrices
  /// With isTrafficCounted: loads and stores, ldmatrix and stmatrix; copies and atomic operations are left out.
  Traffic globalRead, globalWritten, sharedRead, sharedWritten;
};

/// What a device would see of a finding.
enum class Symptom : uint8_t {
  Other,          ///< nothing, or an exception
  IllegalAddress, ///< an access where there is no memory
  Misaligned,     ///< an access that is not aligned
  Endless,        ///< the kernel does not end
};

/// A launch that runs a while at a time. Kernel, memory and what the parameters point to outlive it.
class Execution {
public:
  Execution(const Kernel &kernel, const Launch &launch, GlobalMemory &memory, const Options &options);
  Execution(const Execution &) = delete;
  Execution &operator=(const Execution &) = delete;
  ~Execution();

  /// Runs `instructions` of warps or some more, unless the launch ends before: whether it has. Its error is the first
  /// finding; memory is as that left it.
  Expected<bool> goOn(uint64_t instructions);
  const Counts &counts() const;
  /// Of the finding.
  Symptom symptom() const;

private:
  const Launch launch;
  const Options options;
  std::unique_ptr<Machine> machine;
};

/// Runs all CTAs of `launch`. Its error is the first finding, whose `symptom` is set, if it is asked for; memory is as
/// the finding left it.
Expected<Counts> run(const Kernel &kernel, const Launch &launch, GlobalMemory &memory, const Options &options,
                     Symptom *symptom = nullptr);

} // namespace k2c::ptx

#endif // K2C_PTX_MACHINE_H
