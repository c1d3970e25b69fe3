#!/bin/bash
# Runs kernels of others through the machine of lib/Ptx: what hardware has proven right has to come out right there.
#   scripts/emulator-calibrate.sh FOLDER [--build DIR] [--seeds N] [--arch sm_90a] [--nvcc-flags "FLAGS"] [KERNEL ...]
# FOLDER has for each kernel NAME.json, which describes a launch (docs/Emulator.md), and NAME.cu or NAME.ptx. CUDA is
# compiled by nvcc ($NVCC, PATH, /usr/local/cuda/bin); where there is none, those kernels are skipped and counted. One
# line a kernel; exit status 1 if one of them is wrong, or if there is none.
#   scripts/emulator-calibrate.sh test/Scripts/Inputs/calibrate --build build
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/emulator_calibrate.py" "$@"
