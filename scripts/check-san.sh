#!/bin/bash
# Everything of ours under sanitizers: AddressSanitizer and UBSan (./build-address), ThreadSanitizer (./build-thread).
# Last line: "N passed, N failed, N skipped"; exit code 0 when none failed.
#   scripts/check-san.sh          all unit and lit tests with an instrumented compiler and runtime; compiled programs of
#                                 4 workers whose own code is instrumented, too; 60,000 runs of each fuzzer
#   scripts/check-san.sh --short  the runtime and the readers of hostile bytes; the worker team; 60 s of fuzzers
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

short=''
if [ "${1:-}" = --short ] && [ $# = 1 ]; then
  short=1
elif [ $# -gt 0 ]; then
  echo "check-san: '$*' is not known; the only flag is --short" >&2
  exit 2
fi

if ! has_clang_runtimes && ! scripts/setup.sh libclang-rt-22-dev; then
  echo "check-san: clang's runtimes are missing, so nothing was instrumented; install libclang-rt-22-dev" >&2
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

configure_instrumented thread -DK2C_BUILD_COMPILER=OFF
configure_instrumented address # a folder that was moved is emptied
results=$root/build-address/results
rm -rf "$results"
mkdir -p "$results"

# suite NAME COMMAND ...: a command that runs lit with $LIT_OPTS.
suite() {
  step "tests: $1"
  touch "$results/$1.started"
  LIT_OPTS="--timeout 1800 --xunit-xml-output '$results/$1.lit.xml'" "${@:2}" >&2 || true
}

# one NAME COMMAND ...: a command is a test.
one() {
  local name=$1 outcome='<failure/>' begin=$SECONDS
  step "$name"
  "${@:2}" >&2 && outcome=''
  printf '<testsuites><testcase classname="check-san" name="%s" time="%d">%s</testcase></testsuites>' \
    "$name" $((SECONDS - begin)) "$outcome" >"$results/$name.lit.xml"
  touch "$results/$name.started"
}

export TSAN_OPTIONS=exitcode=66:history_size=7
step "ThreadSanitizer: building the runtime"
build_instrumented thread all
suite thread-units ninja -C build-thread check-fast

if [ "$short" ]; then
  step "AddressSanitizer, UBSan: building the runtime and the readers"
  build_instrumented address RuntimeTests TextTests HostileTests fuzz-all
  suite address-readers /usr/bin/python3 /usr/lib/llvm-22/bin/lit -sv --param tier=fast build-address/unit \
    --filter '(Runtime|Text|Hostile)Tests'
  one fuzz scripts/fuzz.sh $((60 / $(wc -l <build-address/fuzz/list.txt)))
else
  step "AddressSanitizer, UBSan: building everything"
  build_instrumented address all
  suite address-fast ninja -C build-address check-fast
  suite address-check ninja -C build-address check
  suite address-long ninja -C build-address check-long
  for model in llama kimi_k2; do
    one "races-$model" env PATH="$root/build-address/bin:$PATH" python3 test/Harness/check_races.py \
      "test/EndToEnd/oracle/$model" build-thread/bin/k2rt-run
  done
  one fuzz scripts/fuzz.sh --runs 60000
fi
python3 scripts/test-summary.py "$results"
