//===- Kernels.cpp - FLOP/s of emitted kernels beside the core's peak -----===//
//
// One core, in CPU time, so that a shared machine disturbs little. Weights, rows and caches are what a layer of a real
// model has; every kernel is the one that the compiler would emit for this machine (chooseTile).
//
//   build/bin/kernel-bench --benchmark_filter='Linear/bf16' --benchmark_repetitions=5
//
//===----------------------------------------------------------------------===//
#include "CompiledKernel.h"
#include "Linears.h"
#include "Lists.h"
#include "Peaks.h"
#include "TestStep.h"
#include <benchmark/benchmark.h>
#include <memory>
#include <numeric>

namespace k2c::bench {
namespace {

using namespace k2c::test;

/// Zeroed memory on its own pages, as arenas and packed weights are.
class Buffer {
public:
  explicit Buffer(size_t bytes) : memory(static_cast<char *>(std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096))) {
    std::fill_n(memory.get(), bytes, 0);
  }
  static Buffer random(DType type, int64_t elements, uint64_t seed) {
    Buffer buffer(elements * byteWidth(type));
    Random next(seed);
    for (int64_t i = 0; i < elements; ++i) {
      float value = next();
      uint16_t half = bf16Of(value);
      type == DType::F32 ? std::memcpy(buffer.memory.get() + i * 4, &value, 4)
                         : std::memcpy(buffer.memory.get() + i * 2, &half, 2);
    }
    return buffer;
  }
  void *data() { return memory.get(); }

private:
  struct Free {
    void operator()(char *p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> memory;
};

/// Runs all items on this thread until Google Benchmark has enough. Scratch is taken once, as in a session.
void measure(benchmark::State &state, const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args,
             double flops) {
  Expected<CompiledKernel> kernel = compileForHost(desc);
  if (!kernel)
    return state.SkipWithError(kernel.error().text().c_str());
  Buffer scratch(kernel->scratchBytes + 1);
  for (auto _ : state)
    if (launch(*kernel, step, args, 1, scratch.data()).status != 0)
      return state.SkipWithError("the kernel failed");
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

template <double (*Run)(int64_t)> void peak(benchmark::State &state) {
  double flops = 0;
  for (auto _ : state)
    flops += Run(1 << 16);
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

/// Arguments: n, k, rows.
void linear(benchmark::State &state, DType x, DType w) {
  int64_t n = state.range(0), k = state.range(1), rows = state.range(2);
  LinearDesc d;
  d.x = rowsOf(k, x);
  d.y = rowsOf(n, x);
  d.w = {w, 1, n, k, 1};
  d.order = {k, leafCount(k)};
  TestStep step(TestStep::plain(rows));
  Buffer input = Buffer::random(x, rows * k, 1), weights = Buffer::random(w, d.w.elements(), 2);
  Buffer result(rows * n * byteWidth(x));
  measure(state, {"linear", d}, step.step, {input.data(), weights.data(), result.data()},
          2.0 * double(n) * double(k) * double(rows));
}

/// Arguments: experts, experts of a token, hidden, inter, tokens, whose routes are spread evenly. `down`: inter to
/// hidden, weighted; else hidden to gate and up of inter.
void experts(benchmark::State &state, bool down) {
  int64_t matrices = state.range(0), topK = state.range(1), tokens = state.range(4), slots = tokens * topK;
  int64_t k = state.range(down ? 3 : 2), n = down ? state.range(2) : 2 * state.range(3), columns = down ? n : n / 2;
  LinearDesc d;
  d.x = {RowSpace::Slot, k, k, DType::BF16};
  d.y = {RowSpace::Slot, columns, columns, DType::BF16};
  d.w = {DType::BF16, matrices, n, k, down ? 1 : 2};
  d.order = {k, leafCount(k)};
  d.epilogue = epilogueOf(DType::BF16, {down ? LinearDesc::SlotWeight : LinearDesc::UpSum});
  d.grouped = true;
  d.slotsPerToken = topK;
  TestStep step(TestStep::plain(tokens));
  std::vector<int32_t> plan;
  for (int64_t expert = 0; expert <= matrices; ++expert)
    plan.push_back(int32_t(expert * slots / matrices));
  for (int64_t i = 0; i < 2 * slots; ++i)
    plan.push_back(int32_t(i % slots));
  Buffer x = Buffer::random(DType::BF16, slots * k, 1), w = Buffer::random(DType::BF16, d.w.elements(), 2);
  Buffer weights = Buffer::random(DType::F32, slots, 3), y(slots * columns * byteWidth(DType::BF16));
  ExpertTable table(d.w, w.data());
  std::vector<void *> args = {x.data(), table.data()};
  if (down)
    args.push_back(weights.data());
  args.insert(args.end(), {plan.data(), y.data()});
  measure(state, {"experts", d}, step.step, args, 2.0 * double(n) * double(k) * double(slots));
}

/// Arguments: heads, latent, nope, rope, value, tokens: one prompt.
void expanded(benchmark::State &state, DType type) {
  ExpandedAttentionDesc d;
  d.shape.heads = state.range(0);
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = state.range(1);
  d.nope = state.range(2);
  d.rope = state.range(3);
  d.value = state.range(4);
  int64_t heads = d.shape.heads, tokens = state.range(5), slots = TestStep::pageCount * 64;
  d.q = rowsOf(heads * (d.nope + d.rope), type);
  d.o = rowsOf(heads * d.value, type);
  d.uk = {DType::BF16, heads, d.nope, d.latent, 1};
  d.uv = {DType::BF16, heads, d.value, d.latent, 1};
  TestStep step(std::vector<Sequence>{{0, tokens, K2RT_FORM_EXPANDED}});
  Buffer q = Buffer::random(type, tokens * d.q.stride, 1), latent = Buffer::random(type, slots * d.latent, 2);
  Buffer rope = Buffer::random(type, slots * d.rope, 3), uk = Buffer::random(DType::BF16, d.uk.elements(), 4);
  Buffer uv = Buffer::random(DType::BF16, d.uv.elements(), 5), o(tokens * d.o.stride * 4);
  double expansions = double(tokens) * double(heads * d.latent * (d.nope + d.value));
  double products = double(tokens) * double(tokens + 1) / 2 * double(heads * (d.nope + d.rope + d.value));
  measure(state, {"expanded", d}, step.step,
          {q.data(), latent.data(), rope.data(), uk.data(), uv.data(), &step.step, o.data()},
          2 * (expansions + products));
}

/// Arguments: heads, latent, rope, context, sequences: one new token each.
void absorbed(benchmark::State &state, DType type) {
  AbsorbedAttentionDesc d;
  d.shape.heads = state.range(0);
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = state.range(1);
  d.rope = state.range(2);
  int64_t heads = d.shape.heads, context = state.range(3), sequences = state.range(4);
  int64_t slots = TestStep::pageCount * 64;
  d.qLatent = rowsOf(heads * d.latent, type);
  d.qRopeHeadStride = d.rope;
  d.qRope = rowsOf(heads * d.rope, type);
  d.o = rowsOf(heads * d.latent, type);
  TestStep step(std::vector<Sequence>(sequences, {context - 1, 1, K2RT_FORM_ABSORBED}));
  Buffer qLatent = Buffer::random(type, sequences * d.qLatent.stride, 1);
  Buffer qRope = Buffer::random(type, sequences * d.qRope.stride, 2);
  Buffer latent = Buffer::random(type, slots * d.latent, 3), rope = Buffer::random(type, slots * d.rope, 4);
  Buffer o(sequences * d.o.stride * 4);
  measure(state, {"absorbed", d}, step.step,
          {qLatent.data(), qRope.data(), latent.data(), rope.data(), &step.step, o.data()},
          2.0 * double(sequences * context) * double(heads * (2 * d.latent + d.rope)));
}

/// Arguments: heads, kv heads, head size, cached tokens, new tokens, sequences that have them.
void grouped(benchmark::State &state, DType type) {
  GqaAttentionDesc d;
  d.shape.heads = state.range(0);
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.kvHeads = state.range(1);
  d.keyDim = d.valueDim = state.range(2);
  int64_t cached = state.range(3), tokens = state.range(4), sequences = state.range(5);
  int64_t slots = TestStep::pageCount * 64, rows = sequences * tokens;
  d.q = d.o = rowsOf(d.shape.heads * d.keyDim, type);
  TestStep step(std::vector<Sequence>(sequences, {cached, tokens}));
  Buffer q = Buffer::random(type, rows * d.q.stride, 1), k = Buffer::random(type, slots * d.kvHeads * d.keyDim, 2);
  Buffer v = Buffer::random(type, slots * d.kvHeads * d.keyDim, 3), o(rows * d.o.stride * 4);
  double pairs = double(rows) * double(cached) + double(rows) * double(tokens + 1) / 2;
  measure(state, {"gqa", d}, step.step, {q.data(), k.data(), v.data(), &step.step, o.data()},
          4 * pairs * double(d.shape.heads * d.keyDim));
}

void expertShapes(benchmark::internal::Benchmark *benchmark) {
  benchmark->ArgNames({"experts", "top", "hidden", "inter", "tokens"});
  for (int64_t tokens : {1, 8, 32, 512})
    benchmark->Args({32, 4, 1024, 512, tokens})->Args({32, 4, 2048, 512, tokens});
}

void expandedShapes(benchmark::internal::Benchmark *benchmark) {
  benchmark->ArgNames({"heads", "latent", "nope", "rope", "value", "tokens"});
  benchmark->Args({16, 512, 64, 32, 64, 512})->Args({16, 512, 128, 64, 128, 1024});
}

void absorbedShapes(benchmark::internal::Benchmark *benchmark) {
  benchmark->ArgNames({"heads", "latent", "rope", "context", "sequences"});
  benchmark->Args({16, 512, 32, 512, 1})->Args({16, 512, 32, 2048, 1})->Args({64, 512, 64, 512, 8});
}

void groupedShapes(benchmark::internal::Benchmark *benchmark) {
  benchmark->ArgNames({"heads", "kv", "size", "cached", "tokens", "sequences"});
  benchmark->Args({16, 16, 64, 0, 512, 1})->Args({16, 4, 64, 0, 512, 1})->Args({32, 4, 128, 0, 512, 1});
  for (auto [cached, sequences] : {std::pair<int64_t, int64_t>{511, 1}, {511, 12}, {130, 30}})
    benchmark->Args({16, 16, 64, cached, 1, sequences})->Args({16, 4, 64, cached, 1, sequences});
  benchmark->Args({32, 4, 128, 1023, 1, 1});
}

BENCHMARK(peak<runF32Peak>)->Name("Peak/f32");
BENCHMARK(peak<runBf16Peak>)->Name("Peak/bf16");
BENCHMARK_CAPTURE(linear, bf16, DType::BF16, DType::BF16)->Name("Linear/bf16")->Apply(linearShapes);
BENCHMARK_CAPTURE(linear, f32, DType::F32, DType::F32)->Name("Linear/f32")->Apply(linearShapes);
BENCHMARK_CAPTURE(linear, mixed, DType::F32, DType::BF16)->Name("Linear/f32 x bf16")->Apply(linearShapes);
BENCHMARK_CAPTURE(experts, gate_up, false)->Name("Experts/gate_up")->Apply(expertShapes);
BENCHMARK_CAPTURE(experts, down, true)->Name("Experts/down")->Apply(expertShapes);
BENCHMARK_CAPTURE(expanded, bf16, DType::BF16)->Name("Expanded/bf16")->Apply(expandedShapes);
BENCHMARK_CAPTURE(expanded, f32, DType::F32)->Name("Expanded/f32")->Apply(expandedShapes);
BENCHMARK_CAPTURE(absorbed, bf16, DType::BF16)->Name("Absorbed/bf16")->Apply(absorbedShapes);
BENCHMARK_CAPTURE(absorbed, f32, DType::F32)->Name("Absorbed/f32")->Apply(absorbedShapes);
BENCHMARK_CAPTURE(grouped, bf16, DType::BF16)->Name("Gqa/bf16")->Apply(groupedShapes);
BENCHMARK_CAPTURE(grouped, f32, DType::F32)->Name("Gqa/f32")->Apply(groupedShapes);

} // namespace
} // namespace k2c::bench

BENCHMARK_MAIN();
