//===- GpuKernels.cpp - What kernels of a GPU do, counted, and what bounds them ---------------===//
//
// Each kernel is compiled as for an H200 and run by the interpreter of PTX (lib/Ptx), which counts what one CTA does
// for a part of a published model's layer. What the units of a multiprocessor take at least for what was counted:
//
//   issue    instructions of warps, as PTX has them, 4 a cycle
//   FMA      multiply-adds of warps, 4 a cycle
//   L1       wavefronts of shared memory, requests of global memory, and bytes that reach registers: 1, 1, 128 a cycle
//   L2       bytes that the kernel must read and write once, 64 a cycle
//   memory   of these, weights and cache, at the device's bandwidth
//
// The longest is a bound from below of the kernel's time, and no prediction of it.
//
//   build/bin/gpu-kernel-bounds        the tables of docs/performance.md
//
//===----------------------------------------------------------------------===//
#include "GpuKernel.h"
#include "Lists.h"
#include "TestStep.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Kernels/Cost.h"
#include <iostream>

namespace k2c::bench {
namespace {

using namespace k2c::test;

// CUDA C++ programming guide, compute capability 9.0: schedulers and f32 operations of a multiprocessor; H100 white
// paper: L1. L2 is what lib/Planner assumes.
constexpr double warpsPerCycle = 4, registerBytesPerCycle = 128, l2BytesPerCycle = 64;
constexpr double lanesOfWarp = 32, sectorsOfWavefront = 4;
constexpr int64_t columns = 2 * panelColumns; ///< of linears

/// Memory of the kernel, which the interpreter knows by operator new; all bytes are 0x30: small numbers of any type.
using Bytes30 = std::vector<char>;
Bytes30 bytesOf(int64_t bytes) { return Bytes30(size_t(bytes), 0x30); }

struct Problem {
  std::string name;
  KernelDesc desc;
  Load load;
  std::vector<Sequence> sequences;
  std::vector<int64_t> arrays;      ///< bytes of each argument, in their order
  std::vector<int32_t> permutation; ///< of a grouped linear: its third argument
  int64_t experts = 0;              ///< of the table that is its second
  bool takesStep = false;           ///< behind the last but one
};

std::string nameOf(DType type) { return type == DType::F32 ? "f32" : type == DType::BF16 ? "bf16" : "e4m3"; }

Matrix matrix(DType type, int64_t n, int64_t k, int64_t count = 1, int64_t parts = 1) {
  Matrix w{type, count, n, k, parts};
  if (type == DType::F8E4M3)
    w.blockColumns = w.blockRows = 128;
  return w;
}

/// Two panels, for `rows` rows.
Problem linear(DType x, DType w, int64_t k, int64_t rows) {
  LinearDesc d;
  d.x = rowsOf(k, x);
  d.y = rowsOf(columns, x);
  d.w = matrix(w, columns, k);
  d.order = {k, leafCount(k)};
  return {"linear, " + nameOf(w) + " x " + nameOf(x),
          {"linear", d},
          {rows, 0, 0},
          TestStep::plain(rows),
          {rows * k * byteWidth(x), PanelLayout{d.w}.bytes(), rows * columns * byteWidth(x)},
          {},
          0,
          false};
}

/// Gate and up of 384 experts, 8 of which have `rows` slots each; two panels of each.
Problem grouped(DType x, DType w, int64_t k, int64_t rows) {
  constexpr int64_t experts = 384, topK = 8;
  LinearDesc d;
  d.x = {RowSpace::Slot, k, k, x};
  d.y = {RowSpace::Slot, columns / 2, columns / 2, x};
  d.w = matrix(w, columns, k, experts, 2);
  d.order = {k, leafCount(k)};
  d.epilogue = epilogueOf(x, {LinearDesc::UpSum});
  d.grouped = true;
  d.slotsPerToken = topK;
  Problem problem{"experts, " + nameOf(w) + " x " + nameOf(x),
                  {"experts", d},
                  {rows, 0, 0},
                  TestStep::plain(rows),
                  {rows * topK * k * byteWidth(x), 0, rows * topK * columns / 2 * byteWidth(x)},
                  {},
                  experts,
                  false};
  for (int64_t expert = 0; expert <= experts; ++expert)
    problem.permutation.push_back(int32_t((expert + experts / topK - 1) / (experts / topK) * rows));
  for (int64_t i = 0; i < 2 * topK * rows; ++i)
    problem.permutation.push_back(int32_t(i % (topK * rows)));
  return problem;
}

Problem norm(DType type, int64_t width, int64_t rows) {
  RmsNormDesc d;
  d.x = d.y = rowsOf(width, type);
  d.weight = type;
  const int64_t bytes = rows * width * byteWidth(type);
  return {"rms norm, " + nameOf(type),
          {"norm", d},
          {rows, 0, 0},
          TestStep::plain(rows),
          {bytes, width * byteWidth(type), bytes},
          {},
          0,
          false};
}

/// Queries of 8 heads of 128 that share a kv head.
Problem gqa(DType type, int64_t cached, int64_t rows) {
  constexpr int64_t heads = 8, size = 128;
  GqaAttentionDesc d;
  d.shape.heads = heads;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.kvHeads = 1;
  d.keyDim = d.valueDim = size;
  d.q = d.o = rowsOf(heads * size, type);
  const int64_t plane = TestStep::pageCount * 64 * size * byteWidth(type), bytes = rows * d.q.stride * byteWidth(type);
  return {"attention of 8 queries a key, " + nameOf(type),
          {"gqa", d},
          {rows, double(cached) + double(rows + 1) / 2, double(cached + rows)},
          {{cached, rows}},
          {bytes, plane, plane, bytes},
          {},
          0,
          true};
}

/// A tile of 32 heads over latents of 512 and 64.
Problem absorbed(DType type, int64_t cached) {
  constexpr int64_t heads = 32, latent = 512, rope = 64;
  AbsorbedAttentionDesc d;
  d.shape.heads = heads;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = latent;
  d.rope = d.qRopeHeadStride = rope;
  d.qLatent = d.o = rowsOf(heads * latent, type);
  d.qRope = rowsOf(heads * rope, type);
  const int64_t slots = TestStep::pageCount * 64, width = byteWidth(type);
  return {"latent attention, absorbed, " + nameOf(type),
          {"absorbed", d},
          {1, double(cached + 1), double(cached + 1)},
          {{cached, 1, K2RT_FORM_ABSORBED}},
          {heads * latent * width, heads * rope * width, slots * latent * width, slots * rope * width,
           heads * latent * width},
          {},
          0,
          true};
}

/// A head of a prompt.
Problem expanded(DType type, int64_t rows) {
  constexpr int64_t latent = 512, nope = 128, rope = 64, value = 128;
  ExpandedAttentionDesc d;
  d.shape.heads = 1;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = latent;
  d.nope = nope;
  d.rope = rope;
  d.value = value;
  d.q = rowsOf(nope + rope, type);
  d.o = rowsOf(value, type);
  d.uk = matrix(type, nope, latent);
  d.uv = matrix(type, value, latent);
  const int64_t slots = TestStep::pageCount * 64, width = byteWidth(type);
  return {"latent attention, expanded, " + nameOf(type),
          {"expanded", d},
          {rows, double(rows + 1) / 2, double(rows)},
          {{0, rows, K2RT_FORM_EXPANDED}},
          {rows * (nope + rope) * width, slots * latent * width, slots * rope * width, PanelLayout{d.uk}.bytes(),
           PanelLayout{d.uv}.bytes(), rows * value * width},
          {},
          0,
          true};
}

/// Runs it on one CTA.
Expected<ptx::Counts> countsOf(const Problem &problem) {
  static const NvidiaTarget target = *NvidiaTarget::forArch("sm_90a");
  TestStep step(problem.sequences);
  std::vector<Bytes30> arrays;
  std::vector<void *> args, table;
  std::vector<int32_t> permutation = problem.permutation;
  for (int64_t bytes : problem.arrays)
    arrays.push_back(bytesOf(bytes));
  for (Bytes30 &array : arrays)
    args.push_back(array.data());
  Bytes30 matrices;
  if (problem.experts > 0) { // all experts have the same matrix
    matrices = bytesOf(PanelLayout{std::get<LinearDesc>(problem.desc.body).w}.bytes() / problem.experts);
    table.assign(size_t(problem.experts), matrices.data());
    args[1] = table.data();
    args.insert(args.begin() + 2, permutation.data());
  }
  if (problem.takesStep)
    args.insert(args.end() - 1, &step.step);
  return countOnGpu(problem.desc, target, step.step, args, /*ctas=*/1);
}

/// Of experts it is that of a linear for each that has slots.
Cost costOf(const Problem &problem) {
  if (problem.experts == 0)
    return count(problem.desc, problem.load);
  KernelDesc one = problem.desc;
  LinearDesc &linear = std::get<LinearDesc>(one.body);
  linear.grouped = false;
  linear.w.count = 1;
  linear.x.space = linear.y.space = RowSpace::Token;
  Cost all;
  for (int64_t expert = 0; expert < linear.slotsPerToken; ++expert)
    all += count(one, problem.load);
  return all;
}

/// Cycles of one multiprocessor, by unit.
struct Cycles {
  double issue, fma, l1, l2, memory;
  double longest() const { return std::max({issue, fma, l1, l2, memory}); }
  const char *bound() const {
    const std::pair<double, const char *> units[] = {
        {issue, "issue"}, {fma, "FMA"}, {l1, "L1"}, {l2, "L2"}, {memory, "memory"}};
    return std::max_element(std::begin(units), std::end(units))->second;
  }
};

Cycles cyclesOf(const ptx::Counts &counts, const Cost &cost, const Device &device) {
  const double clock = device.f32.value.value / (2 * lanesOfWarp * warpsPerCycle * double(device.cores));
  const double memoryBytesPerCycle = device.memoryRead.value.value / clock / double(device.cores);
  const ptx::Traffic &read = counts.globalRead, &written = counts.globalWritten;
  auto l1 = [](const ptx::Traffic &t) {
    return std::max(
        {double(t.requests), double(t.units) / sectorsOfWavefront, double(t.bytes) / registerBytesPerCycle});
  };
  auto shared = [](const ptx::Traffic &t) {
    return std::max(double(t.units), double(t.bytes) / registerBytesPerCycle);
  };
  const double streamed = cost.weights.value + cost.cache.value;
  return {double(counts.instructions) / warpsPerCycle, cost.flops.value / 2 / lanesOfWarp / warpsPerCycle,
          l1(read) + l1(written) + shared(counts.sharedRead) + shared(counts.sharedWritten),
          (streamed + cost.read.value + cost.written.value) / l2BytesPerCycle, streamed / memoryBytesPerCycle};
}

std::string thousands(double value) { return formatCount(int64_t(value + 0.5)); }

int printRow(const Problem &problem, const Device &device) {
  Expected<ptx::Counts> counts = countsOf(problem);
  if (!counts) {
    std::cerr << counts.error().text() << "\n";
    return 1;
  }
  const Cost cost = costOf(problem);
  const Cycles cycles = cyclesOf(*counts, cost, device);
  auto percent = [&](double part) { return std::to_string(int(100 * part / cycles.longest() + 0.5)) + "%"; };
  const ptx::Traffic &read = counts->globalRead, &written = counts->globalWritten;
  std::cout << "| " << problem.name << " | " << problem.load.rows << " | " << thousands(double(counts->instructions))
            << " | " << thousands(cost.flops.value / 2 / lanesOfWarp) << " | "
            << thousands(double(read.bytes + written.bytes)) << " | " << thousands(double(read.units + written.units))
            << " | " << thousands(double(counts->sharedRead.conflicts + counts->sharedWritten.conflicts)) << " | "
            << thousands(cycles.issue) << " | " << thousands(cycles.l1) << " | " << thousands(cycles.l2) << " | "
            << thousands(cycles.memory) << " | " << cycles.bound() << " | " << percent(cycles.fma) << " | "
            << percent(cycles.memory) << " |\n"
            << std::flush;
  return 0;
}

} // namespace
} // namespace k2c::bench

int main() {
  using namespace k2c::bench;
  using k2c::DType;
  const k2c::Expected<k2c::Topology> topology = k2c::loadTopology("h200x1");
  if (!topology) {
    std::cerr << topology.error().text() << "\n";
    return 1;
  }
  std::cout << "| kernel | rows | instructions | FMAs | bytes asked | sectors | conflicts | issue | L1 | L2 | memory | "
               "bound by | of the f32 rate | of the bandwidth |\n"
               "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|\n";
  std::vector<Problem> problems;
  for (auto [w, x] : {std::pair(DType::F32, DType::F32), {DType::BF16, DType::BF16}, {DType::F8E4M3, DType::BF16}})
    for (int64_t rows : {1, 8, 64})
      problems.push_back(linear(x, w, 8192, rows));
  for (DType w : {DType::BF16, DType::F8E4M3})
    for (int64_t rows : {1, 64})
      problems.push_back(grouped(DType::BF16, w, 7168, rows));
  for (DType type : {DType::F32, DType::BF16}) {
    problems.push_back(gqa(type, 4095, 1));
    problems.push_back(gqa(type, 0, 256));
    problems.push_back(absorbed(type, 4095));
    problems.push_back(expanded(type, 256));
    problems.push_back(norm(type, 7168, 1));
  }
  int failed = 0;
  for (const Problem &problem : problems)
    failed |= printRow(problem, topology->device);
  return failed;
}
