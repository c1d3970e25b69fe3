/* AddressSanitizer beside LLVM's shared libraries, which are not instrumented: containers and allocators that both
 * sides fill cannot be poisoned by one of them. Linked into every executable of an instrumented build. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_container_overflow=0:allow_user_poisoning=0"; }
