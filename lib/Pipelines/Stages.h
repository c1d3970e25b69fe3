//===- Stages.h - The stages of a compile ---------------------------------===//
//
// Each stage takes what the one before it found: source -> plan -> IR, form by form -> objects -> bundle.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PIPELINES_STAGES_H
#define K2C_LIB_PIPELINES_STAGES_H

#include "ProgramKernels.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Frontend/ImportModel.h"
#include "k2c/Model/Safetensors.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Pipelines/Pipelines.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/Planner.h"
#include "k2c/Target/Host.h"
#include "k2c/Target/Nvidia.h"
#include "k2c/Target/Package.h"
#include "k2c/Weights/Narrow.h"
#include "k2c/Weights/Packer.h"

namespace k2c {

/// What the user's source and flags say, checked.
struct Inputs {
  std::string source; ///< checkpoint folder, a config.json of its own, or a .onnx file
  std::string folder; ///< of the checkpoint or the .onnx file; "" for a config.json of its own
  bool isOnnx = false;
  ModelSpec spec;
  std::shared_ptr<const TensorSource> tensors; ///< none: shape-only
  Topology topology;
  HostTarget target;               ///< of a program of a GPU, what runs its step function
  std::optional<NvidiaTarget> gpu; ///< that runs its kernels; none: the processor
  bool isReference = false;        ///< weights are the checkpoint's own bytes: --weights reference
  Limits limits;
  PlanOptions planOptions;
  ExpertPlacement placement; ///< of several ranks
  RouteBound bound;
  int64_t halvesFrom = 0; ///< as #dist.plan has it
  /// Of a step, or of a half of one: what the program has buffers for.
  int64_t programTokens() const { return halvesFrom > 0 ? (limits.stepTokens + 1) / 2 : limits.stepTokens; }
  /// CTAs of a launch on the GPU, at most: all that run at once.
  int64_t gpuCtas() const { return NvidiaTarget::ctasPerCore * topology.device.cores; }
};

/// Writes weights/ranks.json of a program of several ranks: what all hosts have in common of their weights, and of
/// which ranks this one has the experts; none: of all.
Status writePackedRanks(const std::string &bundle, const std::vector<int64_t> &ranks, uint64_t common);

/// Reads the tokenizer of a checkpoint folder, if there is one, as the program will: tokenizer.json, or else
/// tiktoken.model with `tiktoken`, which is what the file does not say. Returns what to tell the user: nothing, or what
/// this build cannot do of it, so that the program takes ids only. Error: it is damaged.
Expected<std::optional<std::string>> checkTokenizer(const std::string &folder, const TiktokenSpec &tiktoken);

/// `options` with the layout that `--layout search` takes, where they ask for it, and a note of it. Errors: other keys
/// beside search; no layout that compiles makes the program, with what the smallest needs.
Expected<CompileOptions> withSearchedLayout(const CompileOptions &options);

/// Whether `--without` leaves steps in two halves out.
bool leavesOverlapOut(const CompileOptions &options);

/// Refuses weights of few bits that `--widen` does not ask to be f32, and `--widen` where there are none.
Status checkWiden(bool widen, const ModelSpec &spec, const std::string &source);

/// Refuses `--ignore-key` beside an ONNX file: the graph says the model, and no key of a file beside it is unknown.
Status checkNoIgnoredKeys(const std::vector<std::string> &ignoreKeys, const std::string &onnxFile);

/// Resolves the source, loads and checks everything that can be wrong before the compiler starts.
Expected<Inputs> readInputs(const CompileOptions &options);

/// Takes the IR through the forms. Diagnostics become the Error of the stage that failed.
class CompilePipeline {
public:
  CompilePipeline(const Inputs &inputs, const CompileOptions &options);

  /// Runs the pipelines up to `form`, from where the last call stopped; the first call plans and imports the model. At
  /// the scheduled form the certificate is checked.
  Status runTo(Form form);

  mlir::ModuleOp module() { return *ir; }
  const Plan &plan() const { return decided; }
  /// Every decision so far, one line each.
  std::string remarks() const;
  /// From the scheduled form on: what the program launches.
  const std::vector<ProgramKernel> &launches() const { return launched; }
  /// Likewise: their code, which is there from the runtime form on.
  const std::vector<KernelCode> &codes() const { return coded; }

private:
  Status run(Form form);
  Status start(Form form);
  Status certify();
  Expected<Plan> planWith(const PlanOptions &chosen, const MeasuredSizes &measured) const;
  void predictByRates();
  PipelineOptions pipelineOptions() const;

  const Inputs &inputs;
  const CompileOptions &options;
  std::string passRemarks; ///< outlives the context, which writes it
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> ir;
  Plan decided;
  std::vector<ProgramKernel> launched;
  std::vector<KernelCode> coded;
  Form next = Form::Model; ///< the first that has not been built
};

/// Blobs and weights/index.json of `map` from a checkpoint in `folder`; of a reference, the link to that folder too.
Expected<PackReport> packCheckpoint(const WeightMap &map, const TensorSource &tensors, const std::string &folder,
                                    const std::string &bundle, const PackOptions &options);

/// What is wrong with the manifest of a bundle.
Error damaged(const std::string &manifest, const std::string &why);
/// The texts of a list in a manifest; what else is there is passed over.
std::vector<std::string> textsAt(const nlohmann::json &manifest, const char *pointer);
/// The config keys that the compile of a bundle was told to ignore.
inline constexpr const char *ignoredKeys = "/ignored_keys";
/// The families that it stored as bf16: ModelSpec::narrowed.
inline constexpr const char *narrowedFamilies = "/spec/narrowed";

/// What `--emit` calls the code of kernels.
constexpr const char *kernelsForm = "kernels";
/// What it calls the kernels of a GPU.
constexpr const char *ptxForm = "ptx";

/// The text of a module, as forms are written.
std::string printed(mlir::ModuleOp module);

/// The code of a kernel to be read: its text once constants are folded and what is computed twice is computed once.
/// LLVM does the same later; the module itself stays as it is.
std::string readableCode(mlir::ModuleOp code);

/// Writes the form that `options` ask for, at which `pipeline` is.
Status emitForm(CompilePipeline &pipeline, const CompileOptions &options, const HostTarget &target);

/// The host program and each kernel as modules of their own. `module` is in the llvm form and outlives the parts.
std::vector<ObjectJob> programParts(mlir::ModuleOp module);

/// How `options` want objects made; those that the cache cannot keep go to `spareDir`.
ObjectOptions objectOptions(const CompileOptions &options, const std::string &spareDir);

/// The code of each kernel of a program of a GPU, as `folder`/ptx/<hash>.ptx and, where ptxas is there, as
/// `folder`/cubin/<hash>.cubin; ptx/index.json has what ptxas says of each. Returns its version; "": it is not there.
/// `pipeline` is at the llvm form.
Expected<std::string> writeGpuCode(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                                   const std::string &folder);

/// Prints the PTX of each kernel behind a line that names it. `pipeline` is at the llvm form.
Status printPtx(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options);

/// Objects of the host program and of the processor's kernels, linked to `path`. `pipeline` is at the llvm form.
Status linkProgram(CompilePipeline &pipeline, const Inputs &inputs, const CompileOptions &options,
                   const std::string &path);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_STAGES_H
