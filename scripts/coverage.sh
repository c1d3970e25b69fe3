#!/bin/bash
# Lines of base, lib, runtime and dialects that the tests run: a build with clang's counters (./build-coverage), all
# unit and lit tests, then the figure by folder and the least covered files. Exit code 1 below 90 % of lines.
#   scripts/coverage.sh [--report]      --report: of what the last run left
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=build-coverage
if [ "${1:-}" != --report ]; then
  if ! has_clang_runtimes; then
    echo "coverage: skipped: clang++-22 or its runtimes are missing; install clang-22 and libclang-rt-22-dev" >&2
    exit 0
  fi
  configure_instrumented coverage
  rm -rf "$build/profiles"
  step "building"
  build_instrumented coverage all
  failed=''
  for tier in check-fast check check-long; do
    step "tests: $tier"
    LIT_OPTS="--timeout 1800" ninja -C "$build" "$tier" >&2 || failed="$failed $tier"
  done
  if [ "$failed" ]; then
    echo "coverage: tests failed, so what they would run is not counted:$failed" >&2
    exit 1
  fi
fi
python3 scripts/coverage-report.py "$build"
