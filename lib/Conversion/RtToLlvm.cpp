//===- RtToLlvm.cpp - The host program in the LLVM dialect ----------------===//
//
// Functions of the runtime form (HostEmitter.h) and the program's description: constants and one query function, the
// only symbol a program exports. Kernel modules stay as they are, declared here by name; the target compiles each on
// its own.
//
//   rt.program @program serve @step arena 4096 scratch 512
//   ->  llvm.func @k2c_program_query(%abi: i32) -> !llvm.ptr    null for another abi
//
//===----------------------------------------------------------------------===//
#include "HostEmitter.h"
#include "dialects/Rt/RtFunctions.h"
#include "k2c/Conversion/Passes.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2rt/program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstddef>

namespace k2c {
#define GEN_PASS_DEF_RTTOLLVM
#include "k2c/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// LLVM functions of the host are called like the runtime form's with this suffix, so that both can stand in one
/// module.
constexpr StringRef hostSuffix = ".host";

/// Writes the constants that describe the program.
class ProgramDescription {
public:
  explicit ProgramDescription(ModuleOp module)
      : module(module), b(OpBuilder::atBlockEnd(module.getBody())), loc(module.getLoc()),
        ptr(LLVM::LLVMPointerType::get(module.getContext())) {}

  void write(rt::ProgramOp program);

private:
  void text(StringRef name, StringRef value);
  void table(StringRef name, ArrayRef<std::string> texts);
  void addresses(StringRef name, ArrayRef<std::string> symbols);
  void numbers(StringRef name, ArrayRef<int64_t> values);
  int64_t slots();
  int64_t collectives();
  Value initialStruct(rt::ProgramOp program, int64_t kernels, int64_t slots, int64_t sites);
  void query();

  ModuleOp module;
  OpBuilder b;
  Location loc;
  Type ptr;
};

void ProgramDescription::text(StringRef name, StringRef value) {
  std::string bytes = value.str() + '\0';
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, b.getStringAttr(bytes));
}

/// A constant array of pointers to `texts`.
void ProgramDescription::table(StringRef name, ArrayRef<std::string> texts) {
  std::vector<std::string> symbols;
  for (auto [index, value] : llvm::enumerate(texts)) {
    symbols.push_back((name + "." + Twine(index)).str());
    text(symbols.back(), value);
  }
  addresses(name, symbols);
}

/// A constant array of the addresses of `symbols`.
void ProgramDescription::addresses(StringRef name, ArrayRef<std::string> symbols) {
  auto type = LLVM::LLVMArrayType::get(ptr, symbols.size());
  auto global = LLVM::GlobalOp::create(b, loc, type, true, LLVM::Linkage::Internal, name, Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&global.getInitializerRegion());
  Value list = LLVM::UndefOp::create(b, loc, type);
  for (auto [index, symbol] : llvm::enumerate(symbols)) {
    Value address = LLVM::AddressOfOp::create(b, loc, ptr, symbol);
    list = LLVM::InsertValueOp::create(b, loc, list, address, static_cast<int64_t>(index));
  }
  LLVM::ReturnOp::create(b, loc, list);
}

/// A constant array of `values`.
void ProgramDescription::numbers(StringRef name, ArrayRef<int64_t> values) {
  auto type = LLVM::LLVMArrayType::get(b.getI64Type(), values.size());
  LLVM::GlobalOp::create(b, loc, type, true, LLVM::Linkage::Internal, name, b.getI64TensorAttr(values));
}

/// Bytes, experts and parts of each weight slot; the number of slots.
int64_t ProgramDescription::slots() {
  std::vector<int64_t> bytes, experts, parts;
  for (auto weights : module.getOps<rt::WeightSlotsOp>()) {
    const size_t end = static_cast<size_t>(weights.getEnd());
    bytes.resize(std::max(bytes.size(), end));
    experts.resize(bytes.size());
    parts.resize(bytes.size());
    std::fill(bytes.begin() + weights.getFirst(), bytes.begin() + end, weights.getBytes());
    std::fill(experts.begin() + weights.getFirst(), experts.begin() + end, weights.getExperts().value_or(0));
    std::fill(parts.begin() + weights.getFirst(), parts.begin() + end, weights.getParts().value_or(1));
  }
  numbers("slot_bytes", bytes);
  numbers("slot_experts", experts);
  numbers("slot_parts", parts);
  return static_cast<int64_t>(bytes.size());
}

/// k2rt_ir_collective of each site, op and axis as one number; how many they are.
int64_t ProgramDescription::collectives() {
  static_assert(sizeof(k2rt_ir_collective) == 5 * sizeof(int64_t) && offsetof(k2rt_ir_collective, axis) == 4 &&
                offsetof(k2rt_ir_collective, row_bytes) == 8 && offsetof(k2rt_ir_collective, quota) == 16 &&
                offsetof(k2rt_ir_collective, members) == 24 && offsetof(k2rt_ir_collective, to) == 32);
  std::vector<int64_t> fields;
  for (auto site : module.getOps<rt::CollectiveOp>()) { // by rising number
    fields.push_back(static_cast<int64_t>(site.getOp()) | static_cast<int64_t>(site.getAxis()) << 32);
    fields.push_back(site.getRowBytes());
    fields.push_back(site.getQuota().value_or(0));
    fields.push_back(site.getMembers());
    fields.push_back(site.getTo().value_or(site.getSite()));
  }
  numbers("collectives", fields);
  return static_cast<int64_t>(fields.size() / 5);
}

/// The value of k2rt_ir_program, field by field in the order of abi.def.
Value ProgramDescription::initialStruct(rt::ProgramOp program, int64_t kernels, int64_t slots, int64_t sites) {
  int64_t planes = 0, groups = 0;
  for (auto plane : module.getOps<rt::PlaneTableOp>()) {
    planes = std::max<int64_t>(planes, plane.getIndex() + 1);
    groups = std::max<int64_t>(groups, plane.getGroup() + 1);
  }
  SmallVector<Type> types;
  SmallVector<StringRef> names;
#define K2RT_FIELD(structure, type, field)                                                                             \
  if (StringRef(#structure) == "k2rt_ir_program") {                                                                    \
    types.push_back(StringRef(#type) == "PTR"                                ? ptr                                     \
                    : StringRef(#type) == "I32" || StringRef(#type) == "U32" ? Type(b.getI32Type())                    \
                                                                             : Type(b.getI64Type()));                  \
    names.push_back(#field);                                                                                           \
  }
#include "k2rt/abi.def"
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto address = [&](StringRef symbol) { return LLVM::AddressOfOp::create(b, loc, ptr, symbol).getResult(); };
  Value value = LLVM::ZeroOp::create(b, loc, type);
  for (auto [index, name] : llvm::enumerate(names)) {
    std::optional<int64_t> number = llvm::StringSwitch<std::optional<int64_t>>(name)
                                        .Case("abi", K2RT_ABI_VERSION)
                                        .Case("arena_bytes", program.getArenaBytes())
                                        .Case("scratch_bytes", program.getScratchBytes())
                                        .Case("n_weights", slots)
                                        .Case("n_planes", planes)
                                        .Case("n_groups", groups)
                                        .Case("n_kernels", kernels)
                                        .Case("n_collectives", sites)
                                        .Case("n_entries", static_cast<int64_t>(program.getEntries().size()))
                                        .Default(std::nullopt);
    Value field;
    if (number)
      field = LLVM::ConstantOp::create(b, loc, types[index], b.getIntegerAttr(types[index], *number));
    else if (types[index] == ptr)
      field = address(name); // of the table that is called as the field is
    else
      continue;
    value = LLVM::InsertValueOp::create(b, loc, value, field, static_cast<int64_t>(index));
  }
  return value;
}

void ProgramDescription::query() {
  auto function =
      LLVM::LLVMFuncOp::create(b, loc, K2RT_PROGRAM_QUERY_NAME, LLVM::LLVMFunctionType::get(ptr, {b.getI32Type()}));
  OpBuilder::InsertionGuard guard(b);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value abi = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(K2RT_ABI_VERSION));
  Value same = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, entry->getArgument(0), abi);
  Value description = LLVM::AddressOfOp::create(b, loc, ptr, "k2c_program");
  Value null = LLVM::ZeroOp::create(b, loc, ptr);
  LLVM::ReturnOp::create(b, loc, ValueRange(LLVM::SelectOp::create(b, loc, same, description, null).getResult()));
}

void ProgramDescription::write(rt::ProgramOp program) {
  std::vector<std::string> names, variants;
  for (auto kernel : module.getOps<rt::KernelOp>()) {
    names.push_back(kernel.getSymName().str());
    variants.push_back(llvm::join(
        llvm::map_range(kernel.getVariants().getAsValueRange<StringAttr>(), [](StringRef v) { return v.str(); }), "|"));
  }
  table("kernel_names", names);
  table("variant_names", variants);
  std::vector<std::string> entries, functions;
  for (NamedAttribute entry : program.getEntries()) {
    entries.push_back(entry.getName().str());
    functions.push_back((cast<FlatSymbolRefAttr>(entry.getValue()).getValue() + hostSuffix).str());
  }
  table("entry_names", entries);
  addresses("entries", functions);
  const int64_t slotCount = slots();
  const int64_t sites = collectives();
  OpBuilder::InsertionGuard guard(b);
  Block scratch;
  b.setInsertionPointToEnd(&scratch);
  Value value = initialStruct(program, static_cast<int64_t>(names.size()), slotCount, sites);
  b.setInsertionPointToEnd(module.getBody());
  auto global =
      LLVM::GlobalOp::create(b, loc, value.getType(), true, LLVM::Linkage::Internal, "k2c_program", Attribute());
  b.createBlock(&global.getInitializerRegion());
  global.getInitializerRegion().front().getOperations().splice(global.getInitializerRegion().front().end(),
                                                               scratch.getOperations());
  LLVM::ReturnOp::create(b, loc, value);
  b.setInsertionPointToEnd(module.getBody());
  query();
}

struct RtToLlvm : impl::RtToLlvmBase<RtToLlvm> {
  using RtToLlvmBase::RtToLlvmBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Runtime, Form::Runtime)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto programs = llvm::to_vector(module.getOps<rt::ProgramOp>());
    if (programs.size() != 1) {
      module.emitError() << "rt-to-llvm: expects one rt.program, found " << programs.size()
                         << "; run lower-to-rt first";
      return signalPassFailure();
    }
    if (failed(rt::checkFunctions(module, "rt-to-llvm")))
      return signalPassFailure();
    SymbolTable symbols(module);
    HostEmitter emitter(module, symbols);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      emitter.emitFunction(function, hostSuffix);
    emitter.declareKernels();
    ProgramDescription(module).write(programs.front());
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (!isa<LLVM::LLVMDialect>(op.getDialect()) && !isa<ModuleOp>(op))
        op.erase();
    for (NamedAttribute attribute : llvm::to_vector(module->getDiscardableAttrs()))
      module->removeDiscardableAttr(attribute.getName());
  }
};

} // namespace
} // namespace k2c
