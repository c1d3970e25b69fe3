# Sourced by the other scripts: the repository's root, configured build folders, options that several have.

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

# ninja with as many jobs as processors and memory allow (a file against MLIR takes up to 1.5 GB).
ninja_within_memory() {
  local memory_kb jobs by_memory
  memory_kb=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
  jobs=$(nproc)
  by_memory=$((memory_kb / 1500000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  [ "$jobs" -le "$by_memory" ] || jobs=$by_memory
  ninja -j "$jobs" "$@"
}

build() { ninja_within_memory -C build "$@"; }

# Whether clang-22 has its sanitizers and its fuzzer (Debian: clang-22, libclang-rt-22-dev).
has_clang_runtimes() {
  command -v clang++-22 >/dev/null || return 1
  local folder
  folder=$(clang++-22 -print-resource-dir)/lib/linux
  [ -f "$folder/libclang_rt.asan-x86_64.a" ] && [ -f "$folder/libclang_rt.tsan-x86_64.a" ] &&
    [ -f "$folder/libclang_rt.fuzzer-x86_64.a" ]
}

# Configures ./build-KIND with clang for K2C_INSTRUMENT=KIND; more options follow.
configure_instrumented() {
  local folder=build-$1
  if [ -f "$folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    rm -rf "$folder"
  fi
  mkdir -p "$folder"
  cmake -G Ninja -S . -B "$folder" -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER=clang-22 \
    -DK2C_INSTRUMENT="$1" -DK2C_FUZZ="$([ "$1" = address ] && echo ON || echo OFF)" "${@:2}" \
    >"$folder/configure.log" 2>&1 || { tail -n 30 "$folder/configure.log" >&2; exit 1; }
}

# build_instrumented KIND TARGET ...
build_instrumented() {
  local folder=build-$1
  ninja_within_memory -C "$folder" "${@:2}" >"$folder/build.log" 2>&1 ||
    { grep -A 30 -m 1 FAILED "$folder/build.log" >&2 || tail -n 30 "$folder/build.log" >&2; exit 1; }
}

# Of the options of bench.sh and bench-cluster.sh, those that decide what to prepare. The others are the programs' own.
benchmark_options() {
  tools='' peers='' python='' folder="${XDG_CACHE_HOME:-$HOME/.cache}/k2c-peers" only=''
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h | --page-only) only=1 ;;
      --peers) peers=1 ;;
      --tools=*) tools=${1#*=} ;;
      --tools) tools=${2:-} ;;
      --peers-folder=*) folder=${1#*=} ;;
      --peers-folder) folder=${2:-} ;;
      --peers-python=*) python=${1#*=} ;;
      --peers-python) python=${2:-} ;;
    esac
    shift
  done
}
