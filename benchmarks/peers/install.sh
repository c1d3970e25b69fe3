#!/bin/bash
# Installs the engines that scripts/bench.sh --peers and scripts/bench-cluster.sh --peers compare with, into FOLDER
# outside the repository. What is there already is left alone; nothing else of the project needs them.
#   benchmarks/peers/install.sh FOLDER      with PEERS_PYTHON=python3: that one's packages, no environment of its own
set -euo pipefail

llama=llama-cpp-python llama_version=0.3.36 # its source package holds vendor/llama.cpp
packages=(numpy safetensors torch transformers)

fail() {
  echo "error: $*" >&2
  exit 1
}
step() { echo "==> $*" >&2; }

[ $# -eq 1 ] || fail "usage: benchmarks/peers/install.sh FOLDER"
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
python=${PEERS_PYTHON:-$folder/python/bin/python3}

# Stops with all tools that are missing.
need() {
  local tool missing=()
  for tool in "$@"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} -eq 0 ] || fail "not found: ${missing[*]}; docs/Dependencies.md names the packages"
}

# A Python with torch and transformers; the converter of llama.cpp needs them, too.
install_python() {
  if [ -z "${PEERS_PYTHON:-}" ] && [ ! -e "$folder/python/whole" ]; then
    step "an environment with ${packages[*]} in $folder/python"
    python3 -m venv "$folder/python" || fail "python3 -m venv failed; install python3-venv"
    "$folder/python/bin/pip" install -q "${packages[@]}"
    touch "$folder/python/whole"
  fi
  "$python" -c "import numpy, safetensors, torch, transformers" ||
    fail "$python lacks a package; it needs ${packages[*]}"
}

install_llama() {
  local name=llama_cpp_python-$llama_version
  [ ! -e "$folder/llama/whole" ] || return 0
  need cmake ninja clang-22 clang++-22 tar
  if [ ! -d "$folder/$name" ]; then
    step "source of $llama $llama_version"
    "$python" -m pip download -q --no-deps --no-binary "$llama" -d "$folder" "$llama==$llama_version"
    tar -xzf "$folder/$name.tar.gz" -C "$folder"
  fi
  step "building llama.cpp for this processor (log: $folder/llama.log)"
  cmake -G Ninja -S "$folder/$name/vendor/llama.cpp" -B "$folder/llama" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DGGML_RPC=ON \
    -DGGML_RPC_RDMA=OFF -DBUILD_SHARED_LIBS=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_EXAMPLES=OFF >"$folder/llama.log" 2>&1 ||
    fail "cmake failed; see $folder/llama.log"
  grep -q "Found OpenMP" "$folder/llama.log" || step "llama.cpp without OpenMP: install libomp-22-dev for its best"
  # cmake passes CMAKE_BUILD_PARALLEL_LEVEL on to ninja.
  cmake --build "$folder/llama" --target llama-bench llama-batched-bench ggml-rpc-server >>"$folder/llama.log" 2>&1 ||
    fail "the build failed; see $folder/llama.log"
  touch "$folder/llama/whole"
}

install_python
install_llama
