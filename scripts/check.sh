#!/bin/bash
# Builds everything and runs the three tiers of tests. Last line: "N passed, N failed, N skipped"; exit code 0 when none
# failed and no tier took far more than its budget.
#   scripts/check.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prepare
step "building"
build all >&2

results=$root/build/results
rm -rf "$results"
mkdir -p "$results"

# NAME.started says that a tier ran, NAME.lit.xml what came of it, NAME.time its seconds: elapsed, user, system.
TIMEFORMAT='%R %U %S'
exec 3>&2
for tier in fast check long; do
  step "tests: $tier"
  target=check
  [ "$tier" = check ] || target=check-$tier
  touch "$results/$tier.started"
  export LIT_OPTS="--xunit-xml-output '$results/$tier.lit.xml'"
  { time ninja -C build "$target" >&3 2>&3 || true; } 2>"$results/$tier.time"
done

python3 scripts/test-summary.py "$results"
