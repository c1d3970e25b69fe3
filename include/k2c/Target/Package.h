//===- Package.h - The bundle ---------------------------------------------===//
//
// DIR/{run, program.so, manifest.json, files.json, config.json, weights/, tokenizer files, lib/libonig.so.5}; of
// several ranks also topology.yaml, placement.json, the files of Launch.h that start them, and their transports in
// lib/; of a GPU ptx/, cubin/ and lib/libk2c-cuda.so. A bundle is assembled in DIR.partial, where an interrupted
// compile can resume its weights, and takes DIR's place in one rename: nothing half done is ever runnable. One process
// at a time works there (PartialFolder.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TARGET_PACKAGE_H
#define K2C_TARGET_PACKAGE_H

#include "base/File.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/Plan.h"
#include "k2c/Planner/RouteBound.h"
#include "k2c/Target/Launch.h"
#include <array>
#include <string>
#include <vector>

namespace k2c {

/// A kernel of the program, in the order of its ids.
struct PackagedKernel {
  std::string name;
  std::string hash;
  std::vector<std::string> variants;
  CostRule cost;
  int64_t arguments = 0; ///< that a launch gives it
};

/// A site of the program at which ranks exchange rows.
struct CollectiveFact {
  int64_t site = 0;
  std::string op, group; ///< "all_to_all_rows" of "ep", "etp", "node", "rail" or "stage", ..
  int64_t members = 0;   ///< of the group
  int64_t rowBytes = 0;
  int64_t quota = 0; ///< rows that a rank may send to another; 0: as many as the program has counted
};

/// The manifest's "device".
struct GpuFacts {
  std::string arch;          ///< sm_90a
  int64_t threads = 0;       ///< of a CTA
  int64_t workersPerCta = 0; ///< that they are
  int64_t ctas = 0;          ///< of a launch, at most
};

/// What manifest.json says of the program, as its runtime form says it.
struct ProgramFacts {
  std::string compute, mla, bitClass; ///< numerics (N0), as nn.numerics spells them
  std::string topology;
  int64_t ranks = 1;
  std::string layout;                ///< as #dist.plan has it
  RouteBound bound;                  ///< likewise
  int64_t halvesFrom = 0;            ///< likewise; the limits are then those of a half
  int64_t cores = 1;                 ///< of the topology's device
  std::vector<int64_t> numa;         ///< its cores by NUMA node; empty: one node
  std::string cpu;                   ///< LLVM's name
  std::vector<std::string> features; ///< that a machine must have
  int64_t l1Bytes = 0, l2Bytes = 0;  ///< data caches of a core that tiles were chosen for
  std::optional<GpuFacts> gpu;       ///< that runs the kernels; none: the processor
  Limits limits;
  std::vector<CachePlane> cache;  ///< in the order of plane ids
  std::vector<SlotShares> shares; ///< how launches read each weight slot
  std::vector<PackagedKernel> kernels;
  std::vector<CollectiveFact> collectives;                                          ///< by site
  int64_t weights = 0, cacheBytes = 0, arena = 0, scratchPerWorker = 0, logits = 0; ///< bytes, of the certificate
  std::vector<int64_t> stages;                                                      ///< as #dist.plan has them
  std::vector<int64_t> stageWeights; ///< bytes that a rank of each stage maps, where there are several
  int64_t expandedFrom = -1;         ///< see MlaForms.h
};

/// What it says of the bundle around the program.
struct BundleFacts {
  int64_t workerReserve = 0; ///< of the plan's reserve, what its workers add
  int64_t codeBytes = 0;     ///< mapped of the runtime, the program and their libraries, and not written to
  int64_t nodes = 1;         ///< of the topology
  int64_t deviceMemory = 0;  ///< of its GPU, that a program may use
  /// Of the weights, those that are not packed: a checkpoint's own bytes.
  int64_t referenceBytes = 0;
  std::string ptxas;         ///< version of that which made its cubins; "": it has none
  ExpertPlacement placement; ///< of several ranks
  std::string placementText; ///< of placement.json; "": there is none
  /// What links within a node and between nodes are called.
  std::array<std::string, 2> tiers = {"node", "network"};
  /// For each of them the tiers of the topology that it stands for, where they are several.
  std::array<std::vector<std::string>, 2> foldedTiers{};
};

/// The placement's file in a bundle.
inline constexpr const char *placementFile = "placement.json";
/// That of the topology, as printTopology writes it, of several ranks and of GPUs: `run links` puts what it measures in
/// its tiers, `k2c explain --kernel` has its rates.
inline constexpr const char *topologyFile = "topology.yaml";

/// Those of a CPU's features that compiled code may use: a machine must have them to run it.
std::vector<std::string> requiredFeatures(const std::vector<std::string> &all);

/// The text of manifest.json. Of `plan` it states the predictions, the reserve, what ranks exchange and hold, and why
/// the program computes in its type, which the IR does not know.
std::string manifestText(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program,
                         const BundleFacts &bundle);

/// What a folder under construction becomes. It replaces one of its kind.
enum class FolderContents : uint8_t {
  Bundle,
  Ptx,    ///< ptx/ and cubin/ of --emit ptx
  Export, ///< a model in another format, of k2c export, whose exportFile says so
};

/// The file by which a folder of k2c export is known.
inline constexpr const char *exportFile = "k2c-export.json";

/// A bundle, or a folder of another kind, under construction, locked until the object dies.
class BundleFolder {
public:
  /// Creates DIR.partial, or re-enters the one that an interrupted compile left, of which finished blobs stay; of PTX
  /// DIR.ptx.partial, of an export DIR.export.partial. Error: DIR exists, does not have such contents and `force` is
  /// not set; DIR is a bundle and shall have PTX; DIR is, or contains, the file or folder `source`, which it would
  /// replace; DIR is a mount point, the home folder, the working folder or above it; another process is writing to DIR;
  /// DIR.partial is not k2c's.
  static Expected<BundleFolder> begin(const std::string &output, const std::string &source, bool force,
                                      FolderContents contents = FolderContents::Bundle);

  const std::string &path() const { return partial; }
  Status write(const std::string &name, const std::string &text) const;
  /// Copies the runtime, its libraries, and what copyModelFiles takes of `checkpoint`.
  Status addRuntime(const std::string &runtime, const std::string &checkpoint) const;
  /// Copies the driver that runs a GPU's kernels on a processor, if this build has it.
  Status addEmulatedDriver() const;
  /// Writes what starts its ranks (Launch.h), and copies the transports between processes that this build has.
  Status addLaunch(const LaunchFacts &facts) const;
  /// Bytes that a run maps of the program's files: run, program.so, and the libraries that both load.
  int64_t codeBytes() const;
  /// Takes the place of the output folder. `canExchange`: the file system can swap two folders in one call; where it
  /// turns out that it cannot, the output steps aside first.
  Status finish(bool canExchange = true) const;
  /// After `error`: removes DIR.partial, or keeps its finished blobs and says so in the error it returns.
  Error abandon(Error error) const;

private:
  BundleFolder() = default;
  std::string output, partial;
  Descriptor marker; ///< of the locked marker file
};

/// Copies what the runtime reads of a checkpoint folder (tokenizer, token ids, config.json), or the file `checkpoint`
/// as config.json, each file atomically, links followed; returns the names of those that are there. Error: a link to
/// nothing, a file that is no regular one.
Expected<std::vector<std::string>> copyModelFiles(const std::string &checkpoint, const std::string &bundle);

/// Copies what turns text into ids and back in any reader of checkpoints, likewise.
Status copyTokenizerFiles(const std::string &from, const std::string &to);

/// Copies config.json and generation_config.json, likewise.
Status copyConfigFiles(const std::string &from, const std::string &to);

/// Bytes of the tokenizer file a checkpoint folder has; 0: none.
int64_t tokenizerBytes(const std::string &checkpoint);

/// The prebuilt runtime: beside the running tool, or in ../bin. Error: where it was looked for.
Expected<std::string> findRuntime();

} // namespace k2c

#endif // K2C_TARGET_PACKAGE_H
