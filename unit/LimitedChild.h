//===- LimitedChild.h - What is said where the system refuses -----------------===//
//
// A limit cannot be taken back, and one of memory would hit the test itself: a child process takes it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_LIMITEDCHILD_H
#define K2C_UNIT_LIMITEDCHILD_H

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace k2c::test {

/// A sanitizer's own memory counts, too, and it ends a program whose memory is refused.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define K2C_TEST_IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define K2C_TEST_IS_SANITIZED 1
#endif
#ifdef K2C_TEST_IS_SANITIZED
inline constexpr bool canLimitMemory = false;
#else
inline constexpr bool canLimitMemory = true;
#endif

/// What `body` returns in a child process; without a word if it ends otherwise.
inline std::string saidInChild(const std::function<std::string()> &body) {
  int ends[2];
  if (::pipe(ends) != 0)
    return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, size_t(count));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

/// Sets a limit of this process, which should be such a child.
inline void limit(decltype(RLIMIT_AS) resource, rlim_t most) {
  const struct rlimit limits{most, most};
  if (::setrlimit(resource, &limits) != 0)
    ::_exit(1);
}

/// From here on this process gets `bytes` of memory at most. What earlier tests left free in the heap is taken first.
inline void limitMoreMemory(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit limits{};
  ::getrlimit(RLIMIT_AS, &limits);
  limits.rlim_cur = rlim_t(pages * ::sysconf(_SC_PAGESIZE));
  if (::setrlimit(RLIMIT_AS, &limits) != 0)
    ::_exit(1);
  void *volatile taken;
  do
    taken = std::malloc(1 << 16);
  while (taken);
  limit(RLIMIT_AS, limits.rlim_cur + rlim_t(bytes));
}

/// From here on this process's calls of `numbers` fail with `code`, as under a container's filter. False: this system
/// has no such filters.
inline bool refuse(const std::vector<unsigned> &numbers, unsigned code) {
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (unsigned number : numbers) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace k2c::test

#endif // K2C_UNIT_LIMITEDCHILD_H
