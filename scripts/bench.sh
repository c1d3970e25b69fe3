#!/bin/bash
# Measures how fast compiled programs are, with a probe of the memory around each measurement, and writes
# docs/performance.md. Peers (llama.cpp, transformers, oneDNN) are installed and measured only with --peers. A run that
# was stopped goes on where it was.
#   scripts/bench.sh [--peers] [--rounds N] [--models dsv3,qwen3moe,olmoe] [--points pp512,tg1] [--help]
set -euo pipefail
here=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
benchmark_options "$@"

if [ -z "$only" ] && [ -n "$peers" ]; then
  scripts/setup.sh libbenchmark-dev libdnnl-dev libomp-22-dev
  PEERS_PYTHON=$python benchmarks/peers/install.sh "$folder"
fi
if [ -z "$only" ] && [ -z "$tools" ]; then
  prepare
  step "building k2c"
  build k2c k2rt-run k2c-roofs ${peers:+kernel-bench} >&2
fi
cd "$here"
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$root/benchmarks/bench.py" "$@"
