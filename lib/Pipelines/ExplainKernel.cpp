//===- ExplainKernel.cpp - One kernel of a bundle, in every form ----------===//
//
// From the compile that the bundle records: the kern.func and the roof of the scheduled form, the code of the runtime
// form. From remarks.txt: every line that names the kernel, since a compile of today does not know what rates the
// machine had. From program.so: the machine code; of a GPU's kernel the PTX beside it.
//
// The roof is the planner's (k2c/Planner/StepCost.h), for one kernel: FLOP at the peak rate of all cores, weights and
// cache at the bandwidth of memory; activations are counted beside, as they stay in caches. A GPU's rate is that of its
// FMAs, as no kernel multiplies with tensor cores.
//
//===----------------------------------------------------------------------===//
#include "k2c/Pipelines/ExplainKernel.h"

#include "Recompile.h"
#include "base/File.h"
#include "base/Utf8.h"
#include "k2c/Planner/PlanDevice.h"
#include "k2c/Support/Join.h"
#include "k2c/Target/Disassembly.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <filesystem>

namespace k2c {

namespace {

std::vector<std::string> namesOf(const std::vector<ProgramKernel> &program) {
  std::vector<std::string> names;
  for (const ProgramKernel &kernel : program)
    names.push_back(kernel.desc.name);
  return names;
}

/// Those of `names` that are the fewest edits away.
std::vector<std::string> nearest(std::vector<std::string> names, const std::string &asked) {
  constexpr size_t shown = 3;
  auto edits = [&](llvm::StringRef name) { return name.edit_distance(asked); };
  llvm::stable_sort(names, [&](llvm::StringRef a, llvm::StringRef b) { return edits(a) < edits(b); });
  names.resize(std::min(names.size(), shown));
  return names;
}

Expected<const ProgramKernel *> find(const std::vector<ProgramKernel> &program, const std::string &asked) {
  std::vector<const ProgramKernel *> found;
  for (const ProgramKernel &kernel : program) {
    if (kernel.desc.name == asked)
      return &kernel;
    if (llvm::StringRef(kernel.desc.name).starts_with(asked))
      found.push_back(&kernel);
  }
  if (found.size() == 1)
    return found.front();
  const std::string place = "--kernel " + shortened(asked);
  if (found.empty())
    return Error{place, "is none of the " + std::to_string(program.size()) + " kernels of the bundle",
                 "name one; the nearest are " + joined(nearest(namesOf(program), asked))};
  const std::string names = joined(found, [](const ProgramKernel *kernel) { return kernel->desc.name; });
  return Error{place, "is the beginning of " + std::to_string(found.size()) + " kernels: " + names, "name one of them"};
}

/// The remarks that have 'NAME' or @NAME in them, that of its tile first.
std::vector<std::string> remarksAbout(const std::string &name, llvm::StringRef remarks) {
  auto isPartOfName = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
  std::vector<std::string> about;
  for (llvm::StringRef line : llvm::split(remarks, '\n'))
    for (size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
      const llvm::StringRef behind = line.substr(at + name.size());
      if (at == 0 || (line[at - 1] != '\'' && line[at - 1] != '@') || (!behind.empty() && isPartOfName(behind[0])))
        continue;
      about.push_back(line.str());
      break;
    }
  llvm::stable_sort(about, [](llvm::StringRef a, llvm::StringRef b) { return isTileRemark(a) && !isTileRemark(b); });
  return about;
}

KernelRoof roofOf(const char *name, const Prediction &step, const Plan &plan, const ProgramKernel &kernel,
                  const ExplainedKernel &machine) {
  KernelRoof roof{name, step.tokens, step.context, 0, {}, {}, {}, {}, {}};
  const Load load = loadOf(kernel, plan, step);
  if (load.rows == 0)
    return roof;
  const Cost cost = count(kernel.desc, load, kernel.tile.weights);
  roof.launches = kernel.launches;
  roof.flops = cost.flops * double(kernel.launches);
  roof.bytes = (cost.weights + cost.cache) * kernel.launches;
  roof.activations = (cost.read + cost.written) * kernel.launches;
  roof.arithmetic = roof.flops / machine.arithmetic.value;
  roof.memory = roof.bytes / machine.memory.value;
  return roof;
}

/// Where nobody names one: of a GPU that of the bundle, else this machine.
std::string machineOf(const ExplainKernelOptions &options, const Inputs &inputs) {
  if (!options.topology.empty())
    return options.topology;
  return inputs.gpu ? (std::filesystem::path(options.bundle) / topologyFile).string() : "host";
}

Status readMachine(const ExplainKernelOptions &options, const Inputs &inputs, ExplainedKernel &explained) {
  Expected<Topology> topology = loadTopology(machineOf(options, inputs));
  if (!topology)
    return topology.takeError();
  if (Status status = checkCompiles(*topology); !status)
    return status;
  const Device &device = topology->device;
  const bool multipliesBf16 = device.kind == DeviceKind::Cpu && inputs.planOptions.compute == DType::BF16;
  const Sourced<FlopRate> &rate = multipliesBf16 ? device.bf16 : device.f32;
  explained.machine = topology->name;
  explained.cores = device.cores;
  explained.arithmetic = {device.whole(rate.value), rate.source};
  explained.memory = device.memoryRead;
  return {};
}

/// Of a GPU's kernel, its PTX: what the driver makes of it is not in the bundle.
Status readPtx(const ExplainKernelOptions &options, ExplainedKernel &explained) {
  const auto path = std::filesystem::path(options.bundle) / "ptx" / (explained.symbol + ".ptx");
  Expected<std::string> text = readUserFile(path.string(), int64_t(1) << 30);
  if (!text)
    return text.takeError();
  std::replace(text->begin(), text->end(), '\t', ' ');
  explained.assembly = std::move(*text);
  return {};
}

Status readAssembly(const ExplainKernelOptions &options, ExplainedKernel &explained) {
  Expected<std::optional<std::string>> all = disassemble(options.bundle + "/program.so", explained.symbol);
  if (!all)
    return all.takeError();
  explained.assembly = std::move(*all);
  if (!explained.assembly)
    return {};
  AssemblyPart part = options.isWhole ? wholeFunction(*explained.assembly) : mainLoop(*explained.assembly);
  explained.assembly = std::move(part.text);
  explained.instructions = part.instructions;
  explained.multiplyAdds = part.multiplyAdds;
  return {};
}

} // namespace

Expected<ExplainedKernel> explainKernel(const ExplainKernelOptions &options) {
  Expected<RecordedCompile> recorded = readRecord(options.bundle, options.checkpoint);
  if (!recorded)
    return recorded.takeError();
  ExplainedKernel explained;
  if (Status status = readMachine(options, recorded->inputs, explained); !status)
    return status.takeError();
  CompilePipeline pipeline(recorded->inputs, recorded->options);
  if (Status status = compileAgain(pipeline, *recorded); !status)
    return status.takeError();
  Expected<const ProgramKernel *> kernel = find(pipeline.launches(), options.kernel);
  if (!kernel)
    return kernel.takeError();
  explained.name = (*kernel)->desc.name;
  explained.symbol = kernelSymbol((*kernel)->desc);
  explained.description = descriptionText(pipeline.module().lookupSymbol<kern::FuncOp>(explained.name));
  const Plan &plan = pipeline.plan();
  explained.roofs = {roofOf("prefill", plan.prefill, plan, **kernel, explained),
                     roofOf("decode", plan.decode, plan, **kernel, explained)};
  if (Status status = pipeline.runTo(Form::Runtime); !status)
    return status.takeError();
  Expected<std::string> remarks = readBundleRemarks(options.bundle);
  if (!remarks)
    return remarks.takeError();
  explained.remarks = remarksAbout(explained.name, *remarks);
  for (const KernelCode &code : pipeline.codes())
    if (llvm::is_contained(code.kernels, explained.name)) {
      explained.code = readableCode(code.in(pipeline.module()));
      for (const std::string &other : code.kernels)
        if (other != explained.name)
          explained.sharing.push_back(other);
    }
  explained.isPtx = recorded->inputs.gpu.has_value();
  if (Status status = explained.isPtx ? readPtx(options, explained) : readAssembly(options, explained); !status)
    return status.takeError();
  return explained;
}

} // namespace k2c
