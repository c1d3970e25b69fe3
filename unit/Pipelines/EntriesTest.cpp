//===- EntriesTest.cpp - a program that is entered at two places ----------===//
//
// A module of two entries goes through all forms to one shared object, and both run, on one worker: what the runtime
// does for a program is written out here.
//
//===----------------------------------------------------------------------===//
#include "Kernels/TestStep.h"
#include "Model/TestFiles.h"
#include "Stages.h"
#include "dialects/Dialects.h"
#include "k2c/Kernels/Emit.h"
#include "k2c/Kernels/LayoutAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <dlfcn.h>
#include <map>

using namespace k2c;

namespace {

constexpr int64_t vocab = 16, hidden = 8;

constexpr const char *twoEntries = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
!v = tensor<?x8xf32, #nn.rows<want>>
!l = tensor<?x16xf32, #nn.rows<want>>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  nn.weights @embed "embed" : tensor<16x8xf32>
  nn.weights @head "head" : tensor<16x8xf32>
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    %v = nn.want_rows %x, %b : !x -> !v
    %l = nn.linear %v, @head : !v -> !l
    nn.sample %l, %b : !l
    return
  }
  func.func @encode(%b: !nn.batch) attributes {nn.entry = "encode"} {
    %x = nn.embed @embed, %b : !x
    nn.observe %x, %b embed : !x
    return
  }
}
)";

float embedding(int64_t id, int64_t k) { return float(id * 3 + k % 5); }
float head(int64_t n, int64_t k) { return float((n + k) % 7); }

int32_t launch(k2rt_ir_worker *worker, int32_t, k2rt_ir_kernel_fn kernel, int64_t grid, void *const *args) {
  worker->begin = 0;
  worker->end = grid;
  return kernel(worker, args);
}
int32_t nothing(k2rt_ir_worker *) { return 0; }

struct Entries : testing::Test {
  Entries() : context(mlir::MLIRContext::Threading::DISABLED) { // objects are compiled in forked children
    mlir::DialectRegistry registry;
    registerDialects(registry);
    registry.insert<mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::scf::SCFDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    loadKernelDialects(context);
  }

  /// Compiles the module for a target whose kernels read matrices in `layout`; entries by name.
  void compile(kern::WeightLayout layout = kern::WeightLayout::Panels) {
    library.reset(); // of an earlier program of that name
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(twoEntries, &context);
    ASSERT_TRUE(module);
    mlir::PassManager planned(&context), pm(&context);
    for (Form form : {Form::Model, Form::Planned})
      buildForm(form, planned, {});
    ASSERT_TRUE(mlir::succeeded(planned.run(*module)));
    auto cpu = (*module)->getAttrOfType<kern::CpuAttr>(kern::KernDialect::targetAttrName);
    (*module)->setAttr(kern::KernDialect::targetAttrName,
                       kern::CpuAttr::get(&context, cpu.getName(), cpu.getCores(), cpu.getL1(), cpu.getL2(),
                                          cpu.getFeatures(), layout));
    for (Form form : {Form::Distributed, Form::Scheduled, Form::Runtime})
      buildForm(form, pm, {});
    ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
    packWeights(*module);
    mlir::PassManager toLlvm(&context);
    buildForm(Form::Llvm, toLlvm, {});
    ASSERT_TRUE(mlir::succeeded(toLlvm.run(*module)));
    ObjectOptions options;
    options.cacheDir = folder / "objects";
    options.jobs = 1;
    Expected<std::vector<std::string>> objects =
        compileObjects(programParts(*module), *HostTarget::forCpu("x86-64-v3"), options);
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
  void packWeights(mlir::ModuleOp runtime) {
    for (auto slots : runtime.getOps<rt::WeightSlotsOp>()) {
      const bool isHead = slots.getFamily() == "head";
      auto value = [&](int64_t, int64_t n, int64_t k) { return isHead ? head(n, k) : embedding(n, k); };
      const std::optional<MatrixLayout> layout = matrixLayout(slots.getLayout());
      test::Array packed = layout ? test::pack(*layout, value) : test::Array(DType::F32, vocab * hidden);
      for (int64_t i = 0; !layout && i < vocab * hidden; ++i)
        packed.set(i, value(0, i / hidden, i % hidden));
      weights.resize(std::max<size_t>(weights.size(), slots.getFirst() + 1));
      weights[slots.getFirst()] = std::make_unique<test::Array>(std::move(packed));
    }
  }

  /// Runs an entry over the tokens 3, 5 and 7, of which the last has logits.
  int32_t run(const std::string &entry) {
    std::vector<int32_t> ids = {3, 5, 7}, positions = {0, 1, 2}, rowSeq = {0, 0, 0}, begin = {0, 3}, cached = {0},
                         want = {2}, form = {1, 1, 1};
    k2rt_ir_step step = {};
    step.token_rows = 3;
    step.want_rows = step.seq_rows = 1;
    step.token_ids = ids.data();
    step.positions = positions.data();
    step.row_seq = rowSeq.data();
    step.row_form = form.data();
    step.seq_begin = begin.data();
    step.seq_len = cached.data();
    step.want = want.data();
    step.logits = logits.data();
    step.capture_hidden = captured.data();
    k2rt_ir_api api = {};
    api.launch = api.launch_open = reinterpret_cast<void *>(launch);
    api.barrier = api.sample = reinterpret_cast<void *>(nothing);
    std::vector<const void *> slots;
    for (const auto &weight : weights)
      slots.push_back(weight->data());
    alignas(4096) static std::byte arena[1 << 16], scratch[1 << 16];
    EXPECT_LE(program->arena_bytes, int64_t(sizeof arena));
    EXPECT_LE(program->scratch_bytes, int64_t(sizeof scratch));
    k2rt_ir_worker worker = {};
    worker.api = &api;
    worker.step = &step;
    worker.arena = arena;
    worker.weights = slots.data();
    worker.scratch = scratch;
    worker.scratch_bytes = sizeof scratch;
    worker.count = 1;
    return entries.at(entry)(&worker);
  }

  struct Closer {
    void operator()(void *handle) const { ::dlclose(handle); }
  };
  mlir::MLIRContext context;
  test::TempFolder folder;
  std::unique_ptr<void, Closer> library;
  const k2rt_ir_program *program = nullptr;
  std::map<std::string, k2rt_ir_step_fn> entries;
  std::vector<std::unique_ptr<test::Array>> weights;
  std::vector<float> logits = std::vector<float>(vocab, -1), captured = std::vector<float>(3 * hidden, -1);
};

} // namespace

TEST_F(Entries, OfOneProgramRunApart) {
  compile();
  ASSERT_EQ(entries.size(), 2u);
  ASSERT_EQ(run("encode"), 0);
  const int64_t ids[] = {3, 5, 7};
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t k = 0; k < hidden; ++k)
      EXPECT_EQ(captured[row * hidden + k], embedding(ids[row], k)) << row << ", " << k;
  EXPECT_EQ(logits, std::vector<float>(vocab, -1)) << "the other entry's";
  captured.assign(captured.size(), -1);
  ASSERT_EQ(run("serve"), 0);
  for (int64_t n = 0; n < vocab; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < hidden; ++k)
      sum += embedding(7, k) * head(n, k);
    EXPECT_EQ(logits[n], sum) << n;
  }
  EXPECT_EQ(captured, std::vector<float>(3 * hidden, -1)) << "the other entry's";
}

TEST_F(Entries, ComputeTheSameWithMatricesInRows) {
  compile();
  ASSERT_EQ(run("serve"), 0);
  const std::vector<float> inPanels = logits;
  weights.clear();
  compile(kern::WeightLayout::Rows);
  EXPECT_EQ(weights[1]->size(), vocab * hidden) << "rows of 32 bytes need no padding";
  logits.assign(vocab, -1);
  ASSERT_EQ(run("serve"), 0);
  EXPECT_EQ(logits, inPanels);
}
