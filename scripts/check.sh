#!/bin/bash
# Builds everything and runs every test. Last line: "N passed, N failed, N skipped"; exit code 0 when none failed.
#   scripts/check.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prepare
step "building"
build all >&2

results=$root/build/results
rm -rf "$results"
mkdir -p "$results"

step "unit tests"
while read -r unit; do
  timeout 900 "build/unit/$unit" --gtest_brief=1 --gtest_output="json:$results/$unit.gtest.json" >&2 || true
  touch "$results/$unit.started"
done <build/unit/list.txt

suites=(k2c)
[ -z "$(find test -name '*.long' -print -quit)" ] || suites+=(long)
for suite in "${suites[@]}"; do
  step "lit tests: $suite"
  LIT_OPTS="--output '$results/$suite.lit.json'" ninja -C build "check-$suite" >&2 || true
  touch "$results/$suite.started"
done

python3 scripts/test-summary.py "$results"
