# Sourced by demo.sh and check.sh: the repository's root, and a configured ./build.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"

step() { echo "==> $*" >&2; }

# Installs what is missing and configures ./build. A build folder that was moved or copied is configured afresh.
prepare() {
  scripts/setup.sh
  if [ -f build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" build/CMakeCache.txt; then
    rm -rf build
  fi
  step "configuring"
  mkdir -p build
  cmake -G Ninja -S . -B build >build/configure.log 2>&1 || { tail -n 30 build/configure.log >&2; exit 1; }
}

# ninja on ./build with as many jobs as processors and memory allow (a file against MLIR takes up to 1.5 GB).
build() {
  local memory_kb jobs by_memory
  memory_kb=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
  jobs=$(nproc)
  by_memory=$((memory_kb / 1500000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  [ "$jobs" -le "$by_memory" ] || jobs=$by_memory
  ninja -C build -j "$jobs" "$@"
}
