#!/bin/bash
# Measures programs of several ranks over links of a known speed, between network namespaces of this machine, and writes
# docs/cluster-results.md. Needs root, iproute2 and UCX. A run that was stopped goes on with what it has.
#   scripts/bench-cluster.sh [--only dispatch,placement] [--rounds N] [--links 400,1000,0] [--prefill N] [--help]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
case " $* " in
  *" --help "* | *" -h "* | *" --page-only "* | *" --tools"[\ =]*) ;;
  *)
    prepare
    step "building k2c"
    build all >&2
    ;;
esac
exec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/benchmarks:$root/test/Harness:$root/test" python3 -m cluster "$@"
