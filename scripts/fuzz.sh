#!/bin/bash
# Runs every libFuzzer target of fuzz/ under AddressSanitizer and UBSan, on seeds from the test data, and prints what
# each did and reached.
#   scripts/fuzz.sh [SECONDS | --runs N] [TARGET ...]     for each target; default 60 seconds
# Stops at the first finding, whose input it leaves in build-address/fuzz. Skips, with a message, where clang's
# fuzzing runtime is not installed (Debian: libclang-rt-22-dev).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bound=-max_total_time=60
if [ "${1:-}" = --runs ] && [[ ${2:-} =~ ^[1-9][0-9]*$ ]]; then
  bound=-runs=$2
  shift 2
elif [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
  bound=-max_total_time=$1
  shift
elif [[ ${1:-} =~ ^[-0-9] ]]; then
  echo "fuzz: '$*' is neither a number of seconds above 0 nor --runs and a number" >&2
  exit 2
fi
if ! has_clang_runtimes; then
  echo "fuzz: skipped: clang++-22 or its runtimes are missing; install clang-22 and libclang-rt-22-dev" >&2
  exit 0
fi

build=build-address
configure_instrumented address
folder=$build/fuzz
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets <"$folder/list.txt"
build_instrumented address "${targets[@]/#/fuzz-}"
python3 fuzz/seeds.py "$folder/seeds"

# "#30000 DONE cov: 812 ft: .." and "INFO: Loaded 1 modules (5101 inline 8-bit counters)" of libFuzzer's log.
report() {
  local runs edges all
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$2")
  edges=$(sed -n 's/^#[0-9]*[[:space:]]*DONE *cov: \([0-9]*\).*/\1/p' "$2")
  all=$(sed -n 's/^INFO: Loaded .*(\([0-9]*\) inline 8-bit counters).*/\1/p' "$2" | head -n 1)
  [ -n "$runs" ] && [ -n "$edges" ] || return 1
  printf '%-18s %9d runs %7d of %7d edges\n' "$1" "$runs" "$edges" "$all"
  total=$((total + runs))
}

total=0
for target in "${targets[@]}"; do
  mkdir -p "$folder/corpus/$target" "$folder/seeds/$target"
  log=$folder/$target.log
  if ! "$folder/fuzz-$target" "$bound" -timeout=20 -rss_limit_mb=3000 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$folder/$target-" "$folder/corpus/$target" "$folder/seeds/$target" >"$log" 2>&1 ||
    ! report "$target" "$log"; then
    tail -n 60 "$log" >&2
    echo "fuzz: $target failed; its input is $(ls -t "$folder/$target"-* 2>/dev/null | head -n 1)" >&2
    exit 1
  fi
done
echo "fuzz: nothing found in $total runs of ${#targets[@]} targets"
