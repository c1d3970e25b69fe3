//===- Entry.cpp - What a GPU enters: a worker, its items, its status -----------------------===//
//
// A kernel's function is that of every target: a worker and pointers. Here is what a worker of a GPU is:
//
//   if the status has a result, return                     an earlier kernel of the step failed
//   worker 0: *begun = number                              how far the step has come
//   items = of the launch's grid, by the step's rows       the host never knows them
//   [begin, end) = this worker's part of them; return if it is empty
//   result = body(the worker, the parameters as an array)
//   if result is not 0 and the first one there: the status = result, launch, absent, worker
//
// The worker and the array are the thread's own; the body is inlined, so that they become registers. Pointers that the
// launch brings are of global memory: saying so keeps the body's accesses off the path that has to find out.
//
// A worker is a warp, whose lanes must never part: the status, which another warp may write meanwhile, is what the
// first lane reads. A body may also ask for a whole CTA as its worker (ctaAttribute), whose warps meet at barriers:
// then they agree on the status, items are of CTAs, as many warps' items each as it has warps, and the CTA has the
// scratch of its warps.
//
//===----------------------------------------------------------------------===//
#include "Entry.h"
#include "k2c/Kernels/Abi.h"
#include "k2c/Kernels/Cta.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace k2c {

namespace {

constexpr unsigned globalSpace = 1;
constexpr unsigned warpShift = 5;

class EntryBuilder {
public:
  EntryBuilder(llvm::Function &body, int64_t arguments, const NvidiaTarget &target)
      : body(body), arguments(arguments), target(target), isOfCta(body.hasFnAttribute(ctaAttribute)),
        b(body.getContext()) {}

  void build() {
    entry = declare();
    launch = entry->getArg(0);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", entry));
    status = global(loadField(launch, abi::gpu_launch::status));
    llvm::Value *result = b.CreateAlignedLoad(b.getInt32Ty(), field(status, abi::gpu_status::result), llvm::Align(4),
                                              /*isVolatile=*/true);
    llvm::Value *hasFailed = b.CreateICmpNE(first(result), b.getInt32(0));
    returnIf(isOfCta ? anyOfCta(hasFailed) : hasFailed);
    findWorker();
    sayBegun();
    llvm::Value *items = countItems(), *number = wide(index), *all = wide(count);
    if (isOfCta) {
      number = wide(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
      all = wide(special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x));
      items = b.CreateUDiv(items, b.getInt64(uint64_t(target.workersPerCta())));
      all = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, all, items); // those beyond have none
      returnIf(b.CreateICmpUGE(number, all));
    }
    llvm::Value *begin = b.CreateUDiv(b.CreateMul(number, items), all);
    llvm::Value *end = b.CreateUDiv(b.CreateMul(b.CreateAdd(number, b.getInt64(1)), items), all);
    returnIf(b.CreateICmpSGE(begin, end));
    llvm::Value *worker = makeWorker(begin, end, number, all);
    report(b.CreateCall(&body, {worker, makeArguments()}), worker);
    b.CreateRetVoid();
  }

private:
  llvm::Function *declare() {
    llvm::Type *bytes = llvm::ArrayType::get(b.getInt8Ty(), sizeof(k2rt_ir_gpu_launch));
    llvm::SmallVector<llvm::Type *> types(size_t(arguments) + 1, b.getInt64Ty());
    types.front() = b.getPtrTy();
    auto *type = llvm::FunctionType::get(b.getVoidTy(), types, /*isVarArg=*/false);
    const std::string name = body.getName().str();
    body.setName(name + ".body");
    body.setLinkage(llvm::Function::InternalLinkage);
    body.addFnAttr(llvm::Attribute::AlwaysInline);
    auto *made = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, body.getParent());
    made->setCallingConv(llvm::CallingConv::PTX_Kernel);
    made->addParamAttr(0, llvm::Attribute::getWithByValType(b.getContext(), bytes));
    made->addParamAttr(0, llvm::Attribute::getWithAlignment(b.getContext(), llvm::Align(8)));
    made->addFnAttr("nvvm.reqntid", std::to_string(target.threads));
    made->addFnAttr("nvvm.minctasm", std::to_string(NvidiaTarget::ctasPerCore)); // registers are for no more of them
    return made;
  }

  llvm::Value *wide(llvm::Value *i32) { return b.CreateZExt(i32, b.getInt64Ty()); }

  llvm::Value *field(llvm::Value *base, abi::Field field) {
    return b.CreateInBoundsGEP(b.getInt8Ty(), base, b.getInt64(uint64_t(field.offset)));
  }
  llvm::Type *typeOf(abi::Field field) {
    switch (field.type) {
    case abi::FieldType::PTR:
      return b.getPtrTy();
    case abi::FieldType::I64:
    case abi::FieldType::U64:
      return b.getInt64Ty();
    default:
      return b.getInt32Ty();
    }
  }
  llvm::Value *loadField(llvm::Value *base, abi::Field which) {
    return b.CreateLoad(typeOf(which), field(base, which));
  }

  /// The pointer, known to be one of global memory.
  llvm::Value *global(llvm::Value *pointer) {
    return b.CreateAddrSpaceCast(b.CreateAddrSpaceCast(pointer, b.getPtrTy(globalSpace)), b.getPtrTy());
  }

  llvm::Value *special(llvm::Intrinsic::ID id) { return b.CreateIntrinsic(b.getInt32Ty(), id, {}); }

  /// What the first lane of the warp has.
  llvm::Value *first(llvm::Value *i32) {
    return b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                             {b.getInt32(~0u), i32, b.getInt32(0), b.getInt32(31)});
  }

  /// Whether it holds for any thread of the CTA.
  llvm::Value *anyOfCta(llvm::Value *condition) {
    return b.CreateIntrinsic(b.getInt1Ty(), llvm::Intrinsic::nvvm_barrier_cta_red_or_aligned_all,
                             {b.getInt32(0), condition});
  }

  void findWorker() {
    llvm::Value *warps = b.getInt32(uint32_t(target.workersPerCta()));
    llvm::Value *warp = first(b.CreateLShr(special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x), warpShift));
    index = b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), warps), warp);
    count = b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), warps);
  }

  void sayBegun() {
    llvm::Value *place = global(loadField(launch, abi::gpu_launch::begun));
    llvm::Value *number = loadField(launch, abi::gpu_launch::number);
    auto *say = llvm::BasicBlock::Create(b.getContext(), "begun", entry);
    auto *goOn = llvm::BasicBlock::Create(b.getContext(), "go.on", entry);
    b.CreateCondBr(b.CreateICmpEQ(index, b.getInt32(0)), say, goOn);
    b.SetInsertPoint(say);
    b.CreateStore(number, place, /*isVolatile=*/true); // the host reads it meanwhile
    b.CreateBr(goOn);
    b.SetInsertPoint(goOn);
  }

  /// ceil(rows * slots / rows_per_item) * items, the rows being those of the step.
  llvm::Value *countItems() {
    step = global(loadField(launch, abi::gpu_launch::step));
    llvm::Value *where = loadField(launch, abi::gpu_launch::rows), *items = loadField(launch, abi::gpu_launch::items);
    llvm::BasicBlock *start = b.GetInsertBlock();
    auto *byRows = llvm::BasicBlock::Create(b.getContext(), "rows", entry);
    auto *joined = llvm::BasicBlock::Create(b.getContext(), "counted", entry);
    b.CreateCondBr(b.CreateICmpSLT(where, b.getInt64(0)), joined, byRows);
    b.SetInsertPoint(byRows);
    llvm::Value *rows = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt8Ty(), step, where));
    llvm::Value *perItem = loadField(launch, abi::gpu_launch::rows_per_item);
    rows = b.CreateMul(rows, loadField(launch, abi::gpu_launch::slots));
    rows = b.CreateAdd(rows, b.CreateSub(perItem, b.getInt64(1)));
    llvm::Value *counted = b.CreateMul(b.CreateUDiv(rows, perItem), items);
    b.CreateBr(joined);
    b.SetInsertPoint(joined);
    llvm::PHINode *all = b.CreatePHI(b.getInt64Ty(), 2);
    all->addIncoming(items, start);
    all->addIncoming(counted, byRows);
    return all;
  }

  /// An object of the thread's own.
  llvm::Value *local(uint64_t bytes) {
    llvm::IRBuilder<> top(&entry->getEntryBlock(), entry->getEntryBlock().begin());
    llvm::AllocaInst *made = top.CreateAlloca(llvm::ArrayType::get(top.getInt8Ty(), bytes));
    made->setAlignment(llvm::Align(8));
    return made;
  }

  /// The worker `number` of `all`.
  llvm::Value *makeWorker(llvm::Value *begin, llvm::Value *end, llvm::Value *number, llvm::Value *all) {
    llvm::Value *worker = local(sizeof(k2rt_ir_worker));
    llvm::Value *bytes = loadField(launch, abi::gpu_launch::scratch_bytes);
    if (isOfCta)
      bytes = b.CreateMul(bytes, b.getInt64(uint64_t(target.workersPerCta())));
    llvm::Value *scratch = global(loadField(launch, abi::gpu_launch::scratch));
    scratch = b.CreateGEP(b.getInt8Ty(), scratch, b.CreateMul(number, bytes));
    b.CreateMemSet(worker, b.getInt8(0), sizeof(k2rt_ir_worker), llvm::Align(8));
    b.CreateStore(step, field(worker, abi::worker::step));
    b.CreateStore(scratch, field(worker, abi::worker::scratch));
    b.CreateStore(bytes, field(worker, abi::worker::scratch_bytes));
    b.CreateStore(b.CreateTrunc(number, b.getInt32Ty()), field(worker, abi::worker::index));
    b.CreateStore(b.CreateTrunc(all, b.getInt32Ty()), field(worker, abi::worker::count));
    b.CreateStore(begin, field(worker, abi::worker::begin));
    b.CreateStore(end, field(worker, abi::worker::end));
    return worker;
  }

  llvm::Value *makeArguments() {
    llvm::Value *array = local(sizeof(void *) * uint64_t(std::max<int64_t>(arguments, 1)));
    for (int64_t i = 0; i < arguments; ++i) {
      llvm::Value *pointer = b.CreateIntToPtr(entry->getArg(unsigned(i) + 1), b.getPtrTy(globalSpace));
      b.CreateStore(b.CreateAddrSpaceCast(pointer, b.getPtrTy()),
                    b.CreateConstInBoundsGEP1_64(b.getPtrTy(), array, uint64_t(i)));
    }
    return array;
  }

  /// The first lane of a warp reports, and of a CTA its first thread: all have the same result.
  void report(llvm::Value *result, llvm::Value *worker) {
    llvm::Value *lane =
        special(isOfCta ? llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x : llvm::Intrinsic::nvvm_read_ptx_sreg_laneid);
    llvm::Value *hasFailed = b.CreateICmpNE(result, b.getInt32(0));
    returnIf(b.CreateNot(b.CreateAnd(hasFailed, b.CreateICmpEQ(lane, b.getInt32(0)))));
    llvm::Value *found =
        b.CreateAtomicCmpXchg(field(status, abi::gpu_status::result), b.getInt32(0), result, llvm::Align(4),
                              llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
    returnIf(b.CreateNot(b.CreateExtractValue(found, 1)));
    b.CreateStore(loadField(launch, abi::gpu_launch::number), field(status, abi::gpu_status::launch));
    b.CreateStore(index, field(status, abi::gpu_status::worker));
    b.CreateStore(loadField(worker, abi::worker::absent), field(status, abi::gpu_status::absent));
  }

  /// Goes on where the condition does not hold.
  void returnIf(llvm::Value *condition) {
    auto *leave = llvm::BasicBlock::Create(b.getContext(), "leave", entry);
    auto *stay = llvm::BasicBlock::Create(b.getContext(), "stay", entry);
    b.CreateCondBr(condition, leave, stay);
    b.SetInsertPoint(leave);
    b.CreateRetVoid();
    b.SetInsertPoint(stay);
  }

  llvm::Function &body;
  int64_t arguments;
  const NvidiaTarget &target;
  const bool isOfCta;
  llvm::IRBuilder<> b;
  llvm::Function *entry = nullptr;
  llvm::Value *launch = nullptr, *status = nullptr, *step = nullptr;
  llvm::Value *index = nullptr, *count = nullptr; ///< of the warp, and how many there are: i32
};

} // namespace

void addEntry(llvm::Function &body, int64_t arguments, const NvidiaTarget &target) {
  EntryBuilder(body, arguments, target).build();
}

} // namespace k2c
