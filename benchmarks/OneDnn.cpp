//===- OneDnn.cpp - The same matrix products by oneDNN ---------------------===//
//
// Beside Linear/bf16 and Linear/f32, where Debian's libdnnl-dev is installed. Weights are in the order oneDNN asks for,
// as ours are packed; one thread, as ours:
//
//   OMP_NUM_THREADS=1 build/bin/kernel-bench --benchmark_filter='(Linear|OneDNN)/(bf16|f32)/' \
//       --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
//
//===----------------------------------------------------------------------===//
#include "Linears.h"
#include <benchmark/benchmark.h>
#include <dnnl.hpp>

namespace k2c::bench {
namespace {

using Memory = dnnl::memory;

/// Zeros of `desc`, which are numbers of every type.
Memory zeros(const Memory::desc &desc, const dnnl::engine &engine) {
  Memory memory(desc, engine);
  std::fill_n(static_cast<char *>(memory.get_data_handle()), desc.get_size(), 0);
  return memory;
}

/// Arguments: n, k, rows.
void matmul(benchmark::State &state, Memory::data_type type) {
  Memory::dim n = state.range(0), k = state.range(1), rows = state.range(2);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  dnnl::matmul::desc shape({{rows, k}, type, Memory::format_tag::ab}, {{k, n}, type, Memory::format_tag::any},
                           {{rows, n}, type, Memory::format_tag::ab});
  dnnl::matmul::primitive_desc chosen(shape, engine);
  dnnl::matmul product(chosen);
  Memory x = zeros(chosen.src_desc(), engine), w = zeros(chosen.weights_desc(), engine),
         y = zeros(chosen.dst_desc(), engine);
  for (auto _ : state) {
    product.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    stream.wait();
  }
  state.SetLabel(chosen.impl_info_str());
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * double(n) * double(k) * double(rows), benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1000);
}

BENCHMARK_CAPTURE(matmul, bf16, Memory::data_type::bf16)->Name("OneDNN/bf16")->Apply(linearShapes);
BENCHMARK_CAPTURE(matmul, f32, Memory::data_type::f32)->Name("OneDNN/f32")->Apply(linearShapes);

} // namespace
} // namespace k2c::bench
