//===- Compile.cpp - k2c compile ------------------------------------------===//
//
// Flags become CompileOptions, and nothing is decided here. What a flag says is checked in two places: its spelling by
// a validator, wrong usage (2); whether model and machine have it by the compile itself, the user's mistake (1).
//
//===----------------------------------------------------------------------===//
#include "k2c/Pipelines/Compile.h"
#include "Commands.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Topology.h"
#include <algorithm>
#include <charconv>
#include <iostream>
#include <limits>

using namespace k2c;

/// Declares the flags of interface.md that this build knows by name but does not have. The result becomes the refusal
/// of one that was given.
static std::shared_ptr<std::string> refuseUnbuilt(CLI::App &command) {
  auto refusal = std::make_shared<std::string>();
  for (auto [flag, what] :
       {std::pair("--quantize", "quantisation"), std::pair("--transport", "a transport between ranks")})
    command.add_option_function<std::string>(
        flag,
        [refusal, flag = flag, what = what](const std::string &value) {
          *refusal = std::string(flag) + " " + value + ": " + what + " is not in this build; leave it out";
        },
        std::string(what) + " (not in this build)");
  return refusal;
}

void k2c::addCompute(CLI::App &command, std::string &compute) {
  command
      .add_option("--compute", compute,
                  "activations (default: bf16 where the checkpoint is stored as bf16 or FP8 and the target has "
                  "AVX512-BF16, else f32); fp8 is not in this build")
      ->check(CLI::IsMember({"f32", "bf16", "fp8"}));
}

CLI::Option *k2c::addCheckpoint(CLI::App &command, std::string &checkpoint) {
  CLI::Option *option = command.add_option("--checkpoint", checkpoint);
  option->description("of a bundle of an ONNX file: the file, of which the bundle has no copy");
  return option;
}

void k2c::addWiden(CLI::App &command, bool &widen) {
  command.add_flag("--widen", widen,
                   "compute in f32 from a widened copy of weights that an ONNX file stores in few bits "
                   "(4-bit and 8-bit integers with scales, FP8); they take 4 bytes each then");
}

void k2c::addNarrow(CLI::App &command, bool &narrow) {
  command.add_flag(
      "--narrow", narrow,
      "store f32 weights as bf16 where all are numbers of bf16, as where an exporter has widened them: half the "
      "memory, and the same bits of f32 arithmetic");
}

/// Element types and forms: what decides the bits of a program, or how its weights lie.
static void addNumerics(CLI::App &command, CompileOptions &options) {
  addCompute(command, options.compute);
  command.add_option("--mla", options.mla, "segment forms of latent attention")
      ->check(CLI::IsMember({"phased", "absorbed", "expanded"}))
      ->capture_default_str();
  command.add_option("--cache", options.cache, "element type of the cache (default: as compute)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  command
      .add_option("--weights", options.weights,
                  "packed blobs, or on a GPU the checkpoint's own bytes, of which nothing is packed")
      ->check(CLI::IsMember({"packed", "reference"}))
      ->capture_default_str();
  addWiden(command, options.widen);
  addNarrow(command, options.narrow);
}

/// A flag that this compile would not read, because it stops at a form before. "": every flag counts.
static std::string strayFlag(const CLI::App &command, const CompileOptions &options) {
  const std::vector<std::string> forms = formNames();
  auto at = [&](const std::string &form) { return std::find(forms.begin(), forms.end(), form) - forms.begin(); };
  // Each flag, and the first form that it changes.
  std::vector<std::pair<std::string, std::string>> flags = {
      {"--force", "program"},   {"--blob-store", "program"},  {"--tile-choice", "planned"},
      {"--without", "planned"}, {"--route-limit", "planned"}, {"--locality-penalty", "planned"}};
  const bool replaces = options.emit == "ptx" && options.output != "-"; // a folder, as a program does
  for (const auto &[flag, form] : flags)
    if (command.count(flag) > 0 && at(options.emit) < at(form) && !(replaces && flag == "--force"))
      return flag + ": has no effect on the " + options.emit + " form; leave it out, or " +
             (form == "program" ? "leave out --emit" : "choose --emit " + form + " or a later one");
  if (options.noKernels && options.emit != "runtime")
    return "--no-kernels: has no effect on the " + options.emit + " form; leave it out, or choose --emit runtime";
  return "";
}

/// For Option::check: 0, or a number up to 1 that is more than nothing to a router, which computes in float.
static CLI::Validator penalty() {
  return CLI::Validator(
      [](const std::string &text) {
        double value = -1;
        const char *const end = text.data() + text.size();
        const auto [next, problem] = std::from_chars(text.data(), end, value);
        const bool isOne = problem == std::errc() && next == end &&
                           (value == 0 || (value >= std::numeric_limits<float>::min() && value <= 1));
        return isOne ? std::string() : "'" + shortened(text) + "' is not a number from 0 to 1";
      },
      "0 to 1");
}

/// Which machines, and what each of them does.
static void addMachines(CLI::App &c, CompileOptions &options) {
  c.add_option("--topology", options.topology, "a built-in topology or a file")->capture_default_str();
  c.add_option(
      "--layout", options.layout,
      "how the ranks of a topology divide the work: ep=8,dp=8 on 8 ranks, ep=4,dp=4,pp=2 in two stages of layers, "
      "tp=2,ep=8,dp=4 in groups of two that divide heads and MLPs, replicas=N copies of the model, "
      "vocab=N with embedding and head divided among the N ranks of a stage, "
      "redundant=N expert slots beyond the experts, step=N as --step-tokens; search takes the best by the planner's "
      "prediction (default: ep and dp as many as ranks, in the fewest stages whose memory fits, with vocab where "
      "it fits in no other way)");
  c.add_option("--placement", options.placement,
               "file of k2c place: which rank holds which experts, copies included (default: in order, copies in the "
               "redundant slots)");
  c.add_option("--route-limit", options.routeLimit,
               "most nodes that the experts of a token are on, in a layer; changes results (default: any)")
      ->transform(whole(1, maxCompiledRanks));
  c.add_option("--locality-penalty", options.localityPenalty,
               "by how much choices of experts fall that a token's home node has not; changes results (default: 0)")
      ->check(penalty());
  c.add_option("--target", options.target, "LLVM CPU name (default: this machine's; of a GPU's host x86-64-v3)");
}

static constexpr const char *examples =
    "examples:\n  k2c compile models/bundled -o out\n  k2c compile models/configs/kimi-k2 -o - --emit runtime\n"
    "  k2c compile model.onnx -o out\n"
    "  k2c compile int4/model.onnx -o out --widen             # weights of few bits, as f32\n"
    "  k2c compile model.onnx -o out --narrow                 # an f32 file of a bf16 model, as bf16\n"
    "  k2c compile CHECKPOINT -o out --max-context 4096 --max-sequences 8 --target x86-64-v3\n"
    "  k2c compile CHECKPOINT -o out --topology cpu2x1 --layout ep=2,dp=2\n"
    "  k2c compile CHECKPOINT -o out --topology cpu4x2 --layout search\n"
    "  k2c compile CHECKPOINT -o out --topology cpu4x2 --route-limit 2\n"
    "  k2c compile models/bundled -o out --topology h200x1    # one NVIDIA GPU; --emit ptx: its kernels alone";

void k2c::addCompile(CLI::App &app, std::function<int()> &run) {
  auto options = std::make_shared<CompileOptions>();
  auto context = std::make_shared<int64_t>(0);
  auto remarks = std::make_shared<bool>(false);
  CLI::App *c = app.add_subcommand("compile", "Compile a checkpoint into a bundle, or stop at a form");
  c->footer(examples);
  c->add_option("SOURCE", options->source,
                "checkpoint folder, config.json, .onnx file or its folder, or org/name in $HF_HOME")
      ->required();
  c->add_option("-o,--output", options->output, "bundle folder; - prints a form")->required();
  addMachines(*c, *options);
  addNumerics(*c, *options);
  c->add_option("--emit", options->emit, "form to stop at")->check(CLI::IsMember(formNames()))->capture_default_str();
  c->add_flag("--no-kernels", options->noKernels, "leave the code of kernels out of the runtime form");
  c->add_option("--step-tokens", options->stepTokens,
                "most tokens in one step of a rank, of a group with tp (default: 2048)")
      ->transform(whole(1, 1 << 20));
  c->add_option("--max-sequences", options->maxSequences, "most sequences at once, of a rank, or a group with tp")
      ->transform(whole(1, 1 << 16))
      ->capture_default_str();
  c->add_option("--max-context", *context, "most tokens of a sequence (default: min(max_position_embeddings, 8192))")
      ->transform(whole(1, 1 << 24));
  c->add_option("--output-rows", options->outputRows, "most rows of logits in one step (default: --max-sequences)")
      ->transform(whole(1, 1 << 20));
  c->add_option("--ignore-key", options->ignoreKeys, "accept this unknown config key");
  c->add_flag("--force", options->force, "replace the folder even if it is not a k2c bundle, or of --emit ptx");
  c->add_option("--cache-dir", options->cacheFolder, "folder of compiled kernels (default: $XDG_CACHE_HOME/k2c)");
  c->add_option("-j,--jobs", options->jobs, "most kernels compiled at a time (default: one a processor)")
      ->transform(whole(1, 4096));
  c->add_option("--without", options->without, "leave out an optional pass; the same bits")
      ->check(CLI::IsMember(withoutNames()));
  c->add_option("--tile-choice", options->tileChoice, "take the n-th best tile of each kernel; the same bits")
      ->transform(whole(0, 7));
  c->add_flag("--remarks", *remarks, "print every decision with its numbers");
  c->add_option("--blob-store", options->blobStore, "folder of weights that bundles share by hard links");
  std::shared_ptr<Console> console = addConsole(*c);
  std::shared_ptr<std::string> unbuilt = refuseUnbuilt(*c);
  c->callback([=, &run] {
    run = [=] {
      if (!unbuilt->empty())
        return fail(*unbuilt);
      if (const std::string stray = strayFlag(*c, *options); !stray.empty())
        return fail(stray);
      if (*context > 0)
        options->maxContext = *context;
      options->progress = console->bar();
      options->note = console->note();
      options->print = [](const std::string &text) { std::cout << text; };
      if (*remarks)
        options->remark = [](const std::string &lines) { std::cerr << lines; };
      if (options->emit == "program")
        setInterruptNote("finished weights wait in " + options->output + ".partial for the same command");
      Status status = compile(*options);
      eraseBar();
      if (status && options->emit == "program" && !console->quiet)
        status = printSummary(options->output);
      return status ? 0 : fail(status.error());
    };
  });
}
