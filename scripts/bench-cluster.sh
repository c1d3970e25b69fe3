#!/bin/bash
# Measures programs of several ranks over links of a known speed, between network namespaces of this machine, and writes
# docs/cluster-results.md. Needs root, iproute2 and UCX; --peers installs llama.cpp, which section rpc compares with. A
# run that was stopped goes on with what it has.
#   scripts/bench-cluster.sh [--only dispatch,placement] [--rounds N] [--links 400,1000,0] [--prefill N] [--peers]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
benchmark_options "$@"

install_peers() { scripts/setup.sh libomp-22-dev && PEERS_PYTHON=$python benchmarks/peers/install.sh "$folder"; }
if [ -z "$only" ] && [ -n "$peers" ] && ! install_peers; then
  step "llama.cpp cannot be installed: section rpc is left out"
fi
if [ -z "$only" ] && [ -z "$tools" ]; then
  prepare
  step "building k2c"
  build all >&2
fi
exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/benchmarks:$root/test/Harness:$root/test" python3 -m cluster "$@"
