//===- Compile.h - From a checkpoint to a bundle --------------------------===//
//
// What the tools call. No MLIR type appears here: the passes, their order and the verifiers between the forms are
// Pipelines.h's, the stages of a compile are Compile.cpp's.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_COMPILE_H
#define K2C_PIPELINES_COMPILE_H

#include "base/Json.h"
#include "k2c/Planner/Plan.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// The command line of `k2c compile`, with its defaults (interface.md fixes the names).
struct CompileOptions {
  std::string source;            ///< checkpoint folder, config.json, or org/name in $HF_HOME
  std::string output;            ///< bundle folder; "-" gives a form to `print`
  std::string topology = "host"; ///< a built-in name or a file
  std::string layout;            ///< how ranks divide the work; empty: k2c/Planner/CompileLayout.h; search
  std::string placement;         ///< a file: which rank holds which experts; empty: in order
  int64_t routeLimit = 0;        ///< nodes that a token's experts are on, in a layer; 0: any
  double localityPenalty = 0;    ///< by which choices of experts fall that a token's home node has not
  std::string target;            ///< LLVM CPU name; empty: this machine's
  std::string compute;           ///< f32 | bf16; empty: as the checkpoint is stored (k2c/Planner/ComputeType.h)
  std::string mla = "phased";    ///< phased | absorbed | expanded
  std::string cache;             ///< empty: as compute
  std::string weights = "packed";
  bool widen = false;                ///< weights of few bits of an ONNX file become f32
  bool narrow = false;               ///< f32 weights that are all bf16's numbers become bf16
  std::vector<std::string> narrowed; ///< families of a recorded compile for which that is known
  std::string emit = "program";      ///< one of formNames()
  bool noKernels = false;            ///< the runtime form without the code of kernels
  /// Of a rank; none: `step` of the layout, or else 2048.
  std::optional<int64_t> stepTokens;
  int64_t maxSequences = 16;         ///< of a rank
  std::optional<int64_t> maxContext; ///< tokens; none: min(max_position_embeddings, 8192)
  std::optional<int64_t> outputRows; ///< most rows of logits in one step; none: one a sequence
  std::vector<std::string> ignoreKeys;
  bool force = false;
  std::string cacheFolder; ///< kernel objects; empty: $XDG_CACHE_HOME/k2c
  int64_t jobs = 0;        ///< most kernels compiled at a time; 0: one a processor
  std::string blobStore;   ///< folder of weights that bundles share by hard links; empty: in the bundle only
  /// Optional passes to leave out, of withoutNames(): the same bits, another program.
  std::vector<std::string> without;
  int64_t tileChoice = 0; ///< which candidate tile, by rising cost: the same bits
  /// Receives the text of a form when `output` is "-".
  std::function<void(const std::string &)> print;
  /// Receives every decision, one line each, when the last pass has run; may be null.
  std::function<void(const std::string &)> remark;
  /// Receives what the user should know and is no error; may be null.
  std::function<void(const std::string &)> note;
  /// Called with (stage, done, total) now and then; null: silent.
  std::function<void(const std::string &, int64_t, int64_t)> progress;
};

/// Compiles `options.source`. Writes a bundle, or the form asked for. Diagnostics of the user's input come back as an
/// Error; nothing runnable is left behind by a failure.
Status compile(const CompileOptions &options);

/// The plan that `compile` would carry out, its certificate exact: weights, arena and scratch are those of the
/// scheduled form. Reads the checkpoint's headers; writes nothing. `output` and `emit` are not read, nor is `widen`:
/// weights of few bits count as f32.
Expected<Plan> planCompile(const CompileOptions &options);

/// Error: `folder` holds no bundle.
Status checkIsBundle(const std::string &folder);
/// Its manifest.json. Error: likewise, or one that is no JSON.
Expected<JsonDocument> readManifest(const std::string &bundle);
/// Its remarks.txt: every decision of its compile, one line each. Error: it has none, or one beyond any compile's.
Expected<std::string> readBundleRemarks(const std::string &bundle);

/// The forms that `--emit` stops at, in order, "program" at the end. "kernels" is the part of the runtime form that is
/// the code of kernels.
std::vector<std::string> formNames();

/// The optional passes that `--without` takes.
std::vector<std::string> withoutNames();

/// LLVM's name of this machine's CPU, or why k2c cannot compile for it.
std::string hostCpuName();

/// The features of this machine's CPU that compiled code may use.
std::vector<std::string> hostCpuFeatures();

/// The command line of `k2c pack`.
struct PackBundleOptions {
  std::string bundle;     ///< a shape-only one
  std::string checkpoint; ///< folder, or org/name in $HF_HOME
  std::string blobStore;  ///< where blobs live; empty: in the bundle
  std::string ranks;      ///< "8-15,20": of the experts those that these ranks read; empty: all
  /// `note` receives what the user should know and is no error; both may be null.
  std::function<void(const std::string &, int64_t, int64_t)> progress;
  std::function<void(const std::string &)> note;
};

/// Adds weights and tokenizer to a bundle; resumes where it was interrupted. Error: the checkpoint is of another model
/// than the one that was compiled; ranks that the bundle does not have.
Status packBundle(const PackBundleOptions &options);

} // namespace k2c

#endif // K2C_PIPELINES_COMPILE_H
