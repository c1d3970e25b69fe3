//===- TestProgram.h - A module of the model form, compiled and run -----------===//
//
// A module goes through all forms to one shared object, and its entries run, on one worker: what the runtime does for a
// program is written out here. Models are `hidden` wide, and have `vocab` tokens.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_PIPELINES_TESTPROGRAM_H
#define K2C_UNIT_PIPELINES_TESTPROGRAM_H

#include "Kernels/TestStep.h"
#include "Model/TestFiles.h"
#include "Stages.h"
#include "dialects/Dialects.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Kernels/LayoutAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <dlfcn.h>
#include <map>

namespace k2c::test {

constexpr int64_t vocab = 16, hidden = 8;

/// A launch of one worker, which has all of the grid.
inline int32_t launchAlone(k2rt_ir_worker *worker, int32_t, k2rt_ir_kernel_fn kernel, int64_t grid, void *const *args) {
  worker->begin = 0;
  worker->end = grid;
  return kernel(worker, args);
}
inline int32_t doNothing(k2rt_ir_worker *) { return 0; }

struct TestProgram : testing::Test {
  TestProgram() : context(mlir::MLIRContext::Threading::DISABLED) { // objects are compiled in forked children
    mlir::DialectRegistry registry;
    registerDialects(registry);
    registry.insert<mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::scf::SCFDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    loadKernelDialects(context);
  }

  /// Element [n, k] of a family's tensor of the layer that is its number `layer`.
  using Weight = std::function<float(llvm::StringRef family, int64_t layer, int64_t n, int64_t k)>;

  /// Compiles `text` for a target whose kernels read matrices in `layout`; entries by name.
  void compile(const char *text, const Weight &weight, kern::WeightLayout layout = kern::WeightLayout::Panels) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    compile(*module, weight, layout);
  }
  /// `look` sees the runtime form.
  void compile(mlir::ModuleOp module, const Weight &weight, kern::WeightLayout layout,
               const std::function<void(mlir::ModuleOp)> &look = {}) {
    library.reset(); // of an earlier program of that name
    mlir::PassManager planned(&context), pm(&context);
    for (Form form : {Form::Model, Form::Planned})
      buildForm(form, planned, {});
    ASSERT_TRUE(mlir::succeeded(planned.run(module)));
    auto cpu = module->getAttrOfType<kern::CpuAttr>(kern::KernDialect::targetAttrName);
    module->setAttr(kern::KernDialect::targetAttrName,
                    kern::CpuAttr::get(&context, cpu.getName(), cpu.getCores(), cpu.getL1(), cpu.getL2(),
                                       cpu.getFeatures(), layout));
    for (Form form : {Form::Distributed, Form::Scheduled, Form::Runtime})
      buildForm(form, pm, {});
    ASSERT_TRUE(mlir::succeeded(pm.run(module)));
    packWeights(module, weight);
    planes.clear();
    for (auto plane : module.getOps<rt::PlaneTableOp>()) {
      planes.resize(std::max<size_t>(planes.size(), plane.getIndex() + 1));
      planes[plane.getIndex()].resize(plane.getCount() * plane.getLayerBytes() / sizeof(float));
    }
    if (look)
      look(module);
    mlir::PassManager toLlvm(&context);
    buildForm(Form::Llvm, toLlvm, {});
    ASSERT_TRUE(mlir::succeeded(toLlvm.run(module)));
    ObjectOptions options;
    options.cacheDir = folder / "objects";
    options.jobs = 1;
    Expected<std::vector<std::string>> objects =
        compileObjects(programParts(module), *HostTarget::forCpu("x86-64-v3"), options);
    ASSERT_TRUE(objects) << objects.error().text();
    ASSERT_TRUE(linkShared(*objects, {K2RT_PROGRAM_QUERY_NAME}, folder / "program.so"));
    library.reset(::dlopen((folder / "program.so").c_str(), RTLD_NOW));
    ASSERT_TRUE(library) << ::dlerror();
    auto query = reinterpret_cast<k2rt_ir_query_fn>(::dlsym(library.get(), K2RT_PROGRAM_QUERY_NAME));
    program = query(K2RT_ABI_VERSION);
    ASSERT_TRUE(program);
    for (int32_t i = 0; i < program->n_entries; ++i)
      entries[static_cast<const char *const *>(program->entry_names)[i]] =
          static_cast<const k2rt_ir_step_fn *>(program->entries)[i];
  }

  /// Slot by slot, in the layouts that the module says.
  void packWeights(mlir::ModuleOp runtime, const Weight &weight) {
    weights.clear();
    mlir::SymbolTable symbols(runtime);
    for (auto slots : runtime.getOps<rt::WeightSlotsOp>()) {
      weights.resize(std::max<size_t>(weights.size(), slots.getFirst() + slots.getCount()));
      auto family = symbols.lookup<nn::WeightsOp>(slots.getFamily());
      if (!family)
        continue; // a table, which is not packed
      const auto type = family.getTensorType();
      const int64_t elements = type.getNumElements(), columns = type.getShape().back();
      const std::optional<MatrixLayout> layout = matrixLayout(slots.getLayout());
      for (int64_t layer = 0; layer < slots.getCount(); ++layer) {
        auto value = [&](int64_t, int64_t n, int64_t k) { return weight(slots.getFamily(), layer, n, k); };
        Array packed = layout ? pack(*layout, value) : Array(DType::F32, elements);
        for (int64_t i = 0; !layout && i < elements; ++i)
          packed.set(i, value(0, i / columns, i % columns));
        weights[slots.getFirst() + layer] = std::make_unique<Array>(std::move(packed));
      }
    }
  }

  /// What a cache group holds of the sequence before the step, and the pages for all of it.
  struct Group {
    int32_t length = 0;
    std::vector<int32_t> pages;
  };

  /// Runs an entry over the first `tokens` of the tokens 3, 5 and 7 of one sequence, of which the last has logits.
  /// `change` may give it another step.
  int32_t run(const std::string &entry, int32_t tokens = 3, const std::vector<Group> &groups = {},
              const std::function<void(k2rt_ir_step &)> &change = {}) {
    std::vector<int32_t> ids = {3, 5, 7}, positions = {0, 1, 2}, rowSeq = {0, 0, 0}, begin = {0, tokens},
                         outputs = {tokens - 1}, form = {1, 1, 1};
    std::vector<const int32_t *> lengths, tables;
    std::vector<std::vector<int64_t>> slots(groups.size());
    std::vector<const int64_t *> slotLists;
    for (const auto &[group, own] : llvm::zip_equal(groups, slots)) {
      for (int64_t token = group.length; token < group.length + tokens; ++token)
        own.push_back(int64_t(group.pages.at(token / 64)) * 64 + token % 64);
      lengths.push_back(&group.length);
      tables.push_back(group.pages.data());
      slotLists.push_back(own.data());
    }
    k2rt_ir_step step = {};
    step.token_rows = step.layer_rows = tokens;
    step.output_rows = step.seq_rows = 1;
    step.token_ids = ids.data();
    step.positions = positions.data();
    step.row_seq = rowSeq.data();
    step.row_form = form.data();
    step.seq_begin = begin.data();
    step.seq_len = lengths.data();
    step.block_tables = tables.data();
    step.append_slots = slotLists.data();
    step.outputs = outputs.data();
    step.logits = logits.data();
    step.capture_hidden = captured.data();
    if (change)
      change(step);
    k2rt_ir_api api = {};
    api.launch = api.launch_nowait = reinterpret_cast<void *>(launchAlone);
    api.barrier = api.sample = reinterpret_cast<void *>(doNothing);
    std::vector<const void *> packed;
    for (const auto &weight : weights)
      packed.push_back(weight->data());
    std::vector<void *> bases;
    for (std::vector<float> &plane : planes)
      bases.push_back(plane.data());
    alignas(4096) static std::byte arena[1 << 16], scratch[1 << 16];
    EXPECT_LE(program->arena_bytes, int64_t(sizeof arena));
    EXPECT_LE(program->scratch_bytes, int64_t(sizeof scratch));
    k2rt_ir_worker worker = {};
    worker.api = &api;
    worker.step = &step;
    worker.arena = arena;
    worker.weights = packed.data();
    worker.planes = bases.data();
    worker.scratch = scratch;
    worker.scratch_bytes = sizeof scratch;
    worker.count = 1;
    return entries.at(entry)(&worker);
  }

  struct Closer {
    void operator()(void *handle) const { ::dlclose(handle); }
  };
  mlir::MLIRContext context;
  TempFolder folder;
  std::unique_ptr<void, Closer> library;
  const k2rt_ir_program *program = nullptr;
  std::map<std::string, k2rt_ir_step_fn> entries;
  std::vector<std::unique_ptr<Array>> weights; ///< by slot
  std::vector<std::vector<float>> planes;      ///< of the cache
  std::vector<float> logits = std::vector<float>(vocab, -1), captured = std::vector<float>(3 * hidden, -1);
};

} // namespace k2c::test

#endif // K2C_UNIT_PIPELINES_TESTPROGRAM_H
