// A table of (name, cpuid leaf, register, bit) after the Intel and AMD manuals; vector state also needs XCR0.
#include "program/CpuFeatures.h"
#include "base/Utf8.h"
#include <algorithm>
#include <cpuid.h>
#include <cstdint>
#include <iterator>

namespace k2c::runtime {

namespace {

enum Register { EAX, EBX, ECX, EDX };
/// What the operating system must save for the feature to be usable: masks of XCR0.
enum State : uint32_t { none = 0, ymm = 0x6, zmm = 0xE6, tiles = 0x60000 };

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  State state;
};

constexpr Feature features[] = {
    {"sse3", 1, 0, ECX, 0, none},
    {"pclmul", 1, 0, ECX, 1, none},
    {"ssse3", 1, 0, ECX, 9, none},
    {"fma", 1, 0, ECX, 12, ymm},
    {"cx16", 1, 0, ECX, 13, none},
    {"sse4.1", 1, 0, ECX, 19, none},
    {"sse4.2", 1, 0, ECX, 20, none},
    {"crc32", 1, 0, ECX, 20, none},
    {"movbe", 1, 0, ECX, 22, none},
    {"popcnt", 1, 0, ECX, 23, none},
    {"aes", 1, 0, ECX, 25, none},
    {"xsave", 1, 0, ECX, 26, none},
    {"avx", 1, 0, ECX, 28, ymm},
    {"f16c", 1, 0, ECX, 29, ymm},
    {"rdrnd", 1, 0, ECX, 30, none},
    {"cx8", 1, 0, EDX, 8, none},
    {"cmov", 1, 0, EDX, 15, none},
    {"mmx", 1, 0, EDX, 23, none},
    {"fxsr", 1, 0, EDX, 24, none},
    {"sse", 1, 0, EDX, 25, none},
    {"sse2", 1, 0, EDX, 26, none},
    {"x87", 1, 0, EDX, 0, none},
    {"fsgsbase", 7, 0, EBX, 0, none},
    {"bmi", 7, 0, EBX, 3, none},
    {"avx2", 7, 0, EBX, 5, ymm},
    {"bmi2", 7, 0, EBX, 8, none},
    {"invpcid", 7, 0, EBX, 10, none},
    {"avx512f", 7, 0, EBX, 16, zmm},
    {"avx512dq", 7, 0, EBX, 17, zmm},
    {"rdseed", 7, 0, EBX, 18, none},
    {"adx", 7, 0, EBX, 19, none},
    {"avx512ifma", 7, 0, EBX, 21, zmm},
    {"clflushopt", 7, 0, EBX, 23, none},
    {"clwb", 7, 0, EBX, 24, none},
    {"avx512cd", 7, 0, EBX, 28, zmm},
    {"sha", 7, 0, EBX, 29, none},
    {"avx512bw", 7, 0, EBX, 30, zmm},
    {"avx512vl", 7, 0, EBX, 31, zmm},
    {"avx512vbmi", 7, 0, ECX, 1, zmm},
    {"pku", 7, 0, ECX, 4, none},
    {"avx512vbmi2", 7, 0, ECX, 6, zmm},
    {"shstk", 7, 0, ECX, 7, none},
    {"gfni", 7, 0, ECX, 8, none},
    {"vaes", 7, 0, ECX, 9, ymm},
    {"vpclmulqdq", 7, 0, ECX, 10, ymm},
    {"avx512vnni", 7, 0, ECX, 11, zmm},
    {"avx512bitalg", 7, 0, ECX, 12, zmm},
    {"avx512vpopcntdq", 7, 0, ECX, 14, zmm},
    {"rdpid", 7, 0, ECX, 22, none},
    {"movdiri", 7, 0, ECX, 27, none},
    {"movdir64b", 7, 0, ECX, 28, none},
    {"avx512vp2intersect", 7, 0, EDX, 8, zmm},
    {"serialize", 7, 0, EDX, 14, none},
    {"amx-bf16", 7, 0, EDX, 22, tiles},
    {"avx512fp16", 7, 0, EDX, 23, zmm},
    {"amx-tile", 7, 0, EDX, 24, tiles},
    {"amx-int8", 7, 0, EDX, 25, tiles},
    {"avxvnni", 7, 1, EAX, 4, ymm},
    {"avx512bf16", 7, 1, EAX, 5, zmm},
    {"avxifma", 7, 1, EAX, 23, ymm},
    {"prefetchi", 7, 1, EDX, 14, none},
    {"xsaveopt", 13, 1, EAX, 0, none},
    {"xsavec", 13, 1, EAX, 1, none},
    {"xsaves", 13, 1, EAX, 3, none},
    {"sahf", 0x80000001, 0, ECX, 0, none},
    {"lzcnt", 0x80000001, 0, ECX, 5, none},
    {"sse4a", 0x80000001, 0, ECX, 6, none},
    {"prfchw", 0x80000001, 0, ECX, 8, none},
    {"mwaitx", 0x80000001, 0, ECX, 29, none},
    {"64bit", 0x80000001, 0, EDX, 29, none},
    {"clzero", 0x80000008, 0, EBX, 0, none},
    {"rdpru", 0x80000008, 0, EBX, 4, none},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, none},
};

uint64_t savedState() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

bool present(const Feature &feature, uint64_t saved) {
  unsigned words[4] = {0, 0, 0, 0};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &words[EAX], &words[EBX], &words[ECX], &words[EDX]))
    return false;
  return (words[feature.reg] >> feature.bit & 1) && (saved & feature.state) == feature.state;
}

} // namespace

Status checkCpuFeatures(const std::vector<std::string> &required, const std::string &cpu) {
  const uint64_t saved = savedState();
  for (const std::string &name : required) {
    const Feature *known =
        std::find_if(std::begin(features), std::end(features), [&](const Feature &f) { return name == f.name; });
    if (known == std::end(features))
      return Error{K2RT_UNSUPPORTED, "target " + shortened(cpu),
                   "needs CPU feature \"" + shortened(name) + "\", which this build cannot check",
                   "compile again with a --target this build knows"};
    if (!present(*known, saved))
      return Error{K2RT_UNSUPPORTED, "target " + shortened(cpu),
                   "this machine lacks CPU feature \"" + shortened(name) + "\"",
                   "compile on this machine, or with a smaller --target such as x86-64-v3"};
  }
  return {};
}

} // namespace k2c::runtime
