//===- Linears.h - The matrix products that are measured -------------------===//
#ifndef K2C_BENCHMARKS_LINEARS_H
#define K2C_BENCHMARKS_LINEARS_H

#include <benchmark/benchmark.h>
#include <utility>

namespace k2c::bench {

/// n outputs of k inputs for each of `rows` rows.
inline void linearShapes(benchmark::internal::Benchmark *benchmark) {
  benchmark->ArgNames({"n", "k", "rows"});
  for (int64_t rows : {1, 2, 4, 8, 16, 32, 64, 128, 512})
    for (std::pair<int64_t, int64_t> shape : {std::pair<int64_t, int64_t>{1024, 1024}, {1024, 512}, {2048, 7168}})
      benchmark->Args({shape.first, shape.second, rows});
}

} // namespace k2c::bench

#endif // K2C_BENCHMARKS_LINEARS_H
