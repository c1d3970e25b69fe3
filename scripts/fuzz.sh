#!/bin/bash
# Runs every libFuzzer target of fuzz/ under AddressSanitizer and UBSan, on seeds from the test data.
#   scripts/fuzz.sh [SECONDS]     seconds for each target; default 60
# Stops at the first finding, whose input it leaves in build-fuzz/fuzz. Skips, with a message, where clang's fuzzing
# runtime is not installed (Debian: libclang-rt-22-dev).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz: seconds must be a whole number above 0, not '$seconds'" >&2
  exit 2
fi
if ! command -v clang++-22 >/dev/null ||
  ! ls "$(clang++-22 -print-resource-dir)"/lib/*/libclang_rt.fuzzer*.a >/dev/null 2>&1; then
  echo "fuzz: skipped: clang++-22 or its fuzzing runtime is missing; install clang-22 and libclang-rt-22-dev" >&2
  exit 0
fi

build=build-fuzz
mkdir -p "$build"
cmake -G Ninja -S . -B "$build" -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER=clang-22 -DK2C_FUZZ=ON \
  -DK2C_BUILD_TESTS=OFF >"$build/configure.log" 2>&1 || { tail -n 30 "$build/configure.log" >&2; exit 1; }
ninja -C "$build" fuzz-all >"$build/build.log" 2>&1 || { tail -n 30 "$build/build.log" >&2; exit 1; }

# Seeds: small real files of each kind.
seeds=$build/fuzz/seeds
rm -rf "$seeds"
mkdir -p "$seeds"/{Config,Safetensors,Topology,Query,Workload,Layout,Tokenizer,Tiktoken,Manifest,WeightIndex}
n=0
for config in test/EndToEnd/oracle/*/config.json; do cp "$config" "$seeds/Config/$((n += 1))"; done
head -c 40000 test/EndToEnd/oracle/llama/model.safetensors >"$seeds/Safetensors/llama"
cp models/topologies/*.yaml "$seeds/Topology"
python3 - "$seeds/Query" <<'PYTHON'
import json, sys
for item in json.load(open("test/Planner/golden_public.json"))["items"]:
    if item["function"] and item["recomputed"] is not None and item["function"].isidentifier():
        with open(f"{sys.argv[1]}/{item['id']}".replace("*", "_"), "w") as seed:
            seed.write(item["function"] + "\n" + json.dumps(item["inputs"]))
PYTHON
sed -n '/^```yaml/,/^```/{/^```/d;p}' docs/Workload.md >"$seeds/Workload/chat.yaml"
echo 'tp=2,ep=8,dp=8,overlap=1,redundant=8' >"$seeds/Layout/serve"
echo 'ep=8,cp=2,step=4096,prefill.ep=8,prefill.etp=2,prefill.cp=2,prefill.replicas=2,prefill.redundant=8' \
  >"$seeds/Layout/pools"
echo 'ep=8,dp=8,pp=2,schedule=dualpipe,chunks=1,microbatches=8,recompute=k2,zero=os,sp=1' >"$seeds/Layout/train"
cp test/Runtime/tokenizers/{toy,flags,cuts,metaspace,mixtral}.json "$seeds/Tokenizer"
cp test/Runtime/tokenizers/kimi.model "$seeds/Tiktoken"
echo '{"format":1,"slots":[{"slot":0,"name":"w","layer":null,"file":"a.bin","bytes":4096,"xxh3":"0"}]}' \
  >"$seeds/WeightIndex/one"
echo '{"format":1,"model":{"name":"m","layers":1,"hidden":1,"vocab":1},"numerics":{"version":1}}' \
  >"$seeds/Manifest/one"

for target in Config Safetensors Topology Query Workload Layout Tokenizer Tiktoken Manifest WeightIndex; do
  echo "==> $target, $seconds s" >&2
  mkdir -p "$build/fuzz/corpus/$target"
  if ! ASAN_OPTIONS=detect_container_overflow=0 "$build/fuzz/fuzz-$target" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=3000 -max_len=65536 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/fuzz/$target-" \
    "$build/fuzz/corpus/$target" "$seeds/$target" >"$build/fuzz/$target.log" 2>&1; then
    tail -n 60 "$build/fuzz/$target.log" >&2
    echo "fuzz: $target failed; its input is $(ls -t "$build/fuzz/$target"-* | head -n 1)" >&2
    exit 1
  fi
  sed -n 's/^stat::number_of_executed_units: */    executed: /p' "$build/fuzz/$target.log" >&2
done
echo "fuzz: nothing found"
