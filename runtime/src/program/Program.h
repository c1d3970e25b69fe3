// program.so: opened, asked for its description, checked against the manifest.
#ifndef K2RT_PROGRAM_PROGRAM_H
#define K2RT_PROGRAM_PROGRAM_H

#include "base/Error.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

/// Its name in a bundle.
inline constexpr char programFile[] = "program.so";

/// The entry of steps that generate tokens; every program has it.
inline constexpr char serveEntry[] = "serve";
/// That of steps in two halves, of programs whose manifest says that they have them.
inline constexpr char halvesEntry[] = "serve_halves";

/// A loaded program. Move-only; the shared object stays loaded as long as it lives.
class Program {
public:
  /// Opens `folder`/program.so. Refuses another ABI and a description that contradicts the manifest.
  static Expected<Program> load(const std::string &folder, const Manifest &manifest);

  const k2rt_ir_program &description() const { return *facts; }
  /// The function that steps enter under that name; null when the program has none.
  k2rt_ir_step_fn entry(std::string_view name) const;
  /// Name of a kernel; "?" when the id is out of range.
  const char *kernelName(int32_t kernel) const;
  /// Name of variant `variant` of `kernel`; "" when it has no such variant.
  const std::string &variantName(int32_t kernel, int32_t variant) const;

private:
  struct Closer {
    void operator()(void *handle) const;
  };
  std::unique_ptr<void, Closer> handle;
  const k2rt_ir_program *facts = nullptr;
  std::vector<std::vector<std::string>> variants;
};

} // namespace k2c::runtime

#endif
