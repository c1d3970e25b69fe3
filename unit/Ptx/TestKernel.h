// Kernels of a few lines, and what they leave in memory.
#ifndef K2C_UNIT_PTX_TESTKERNEL_H
#define K2C_UNIT_PTX_TESTKERNEL_H

#include "k2c/Ptx/Machine.h"

#include <gtest/gtest.h>

namespace k2c::ptx {

/// A module of one entry `k` with 64-bit parameters `out` and `in`, registers of all types (%p, %h, %r, %d, %f, %e: 16
/// each), 4 KiB of shared memory in `tile`, and `body`, which begins at line 8.
inline std::string moduleOf(const std::string &body, const std::string &directives = "") {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 16 .b8 tile[4096];\n"
         ".entry k(.param .u64 out, .param .u64 in)\n" +
         directives +
         "\n{ .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .f64 "
         "%e<16>;\n" +
         body + "\n}\n";
}

/// Whether `text` has `part` in it.
inline testing::AssertionResult says(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
}

/// A kernel with memory to write and to read.
class TestKernel {
public:
  explicit TestKernel(const std::string &body, const std::string &directives = "") : text(moduleOf(body, directives)) {
    memory.add(out.data(), out.size() * sizeof(uint32_t), "out", false);
    memory.add(in.data(), in.size() * sizeof(uint32_t), "in", true);
  }

  /// The text of the error; empty: none.
  std::string run() {
    Expected<Module> module = parse(text, "test.ptx");
    if (!module)
      return module.error().text();
    Expected<Kernel> kernel = Kernel::decode(*module, "k");
    if (!kernel)
      return kernel.error().text();
    const void *given[] = {out.data(), in.data()};
    launch.parameters = {&given[0], &given[1]};
    Expected<Counts> counted = ptx::run(*kernel, launch, memory, options, &symptom);
    if (!counted)
      return counted.error().text();
    counts = *counted;
    return "";
  }

  std::string text;
  alignas(128) std::array<uint32_t, 4096> out{}, in{};
  GlobalMemory memory;
  Launch launch;
  Options options;
  Counts counts;
  Symptom symptom = Symptom::Other;
};

} // namespace k2c::ptx

#endif // K2C_UNIT_PTX_TESTKERNEL_H
