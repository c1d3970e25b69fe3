/* AddressSanitizer beside LLVM's shared libraries, which are not instrumented: containers and allocators that both
 * sides fill cannot be poisoned by one of them. A report ends in a signal: exit code 1 is what tests of refusals
 * expect. Linked into every executable of an instrumented build. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_container_overflow=0:allow_user_poisoning=0:abort_on_error=1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1"; }
