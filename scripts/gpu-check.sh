#!/bin/bash
# Checks and measures programs on this machine's NVIDIA GPU in ten minutes, and writes docs/gpu-results.md. With --pack
# it makes a folder instead that does so on another machine, which needs a driver and python3, no compiler, no network:
#   scripts/gpu-check.sh                                      here
#   scripts/gpu-check.sh --pack FOLDER [--programs llama,mixtral:bf16] [--topology h100x1]
#   python3 FOLDER/check.py                                   there: writes FOLDER/gpu-results.md
#   scripts/gpu-check.sh --driver emulated --programs llama   without a GPU, which measures nothing
set -euo pipefail
here=$PWD
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$root/scripts/gpu-check.sh"
  echo "options: --pack FOLDER --programs LIST --topology NAME --driver FILE|emulated --minutes N --output FILE"
  echo "         --tools FOLDER (of k2c, in place of a build) --prompts N --jobs N --cache-dir FOLDER"
}

folder="" driver="" topology="" tools="" output="$root/docs/gpu-results.md"
pack=() check=()
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage; exit 0 ;;
    --pack | --driver | --topology | --tools | --output | --programs | --prompts | --jobs | --cache-dir | --minutes)
      [ $# -ge 2 ] || { echo "gpu-check: error: $1 needs a value" >&2; exit 2; } ;;
    *) echo "gpu-check: error: $1 is no option; see --help" >&2; exit 2 ;;
  esac
  case $1 in
    --pack) folder=$2 ;;
    --driver) driver=$2; check+=(--driver "$2") ;;
    --topology) topology=$2 ;;
    --tools) tools=$2 ;;
    --output) output=$2 ;;
    --minutes) check+=(--minutes "$2") ;;
    *) pack+=("$1" "$2") ;;
  esac
  shift 2
done
if [ -z "$tools" ]; then
  prepare
  step "building k2c"
  build k2c k2rt-run k2c-cuda >&2
  tools=$root/build/bin
fi
cd "$here"
export PYTHONDONTWRITEBYTECODE=1
pack_into() { python3 "$root/benchmarks/gpu/pack.py" "$1" --tools "$tools" --topology "$2" ${pack[@]+"${pack[@]}"}; }
if [ -n "$folder" ]; then
  pack_into "$folder" "${topology:-h200x1}"
  exit
fi
# Of programs for this machine's GPU; the emulated driver takes those of any.
folder=$(dirname "$tools")/gpu-check
pack_into "$folder" "${topology:-$([ "$driver" = emulated ] && echo h200x1 || echo gpu)}"
exec python3 "$folder/check.py" --output "$output" ${check[@]+"${check[@]}"}
