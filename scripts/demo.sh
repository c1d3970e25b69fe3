#!/bin/bash
# From a fresh machine to generated text: installs what is missing, builds k2c, compiles the bundled model for this
# machine and generates with the program that comes out. The planner is built first, and its plan of a cluster for Kimi
# K2 is there to read while the rest builds.
#   scripts/demo.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prepare
export NINJA_STATUS="[%f of %t, %e s] "
step "building the planner (the first time 2 to 4 minutes on two processors)"
build k2c-plan >&2
step "build/bin/k2c-plan kimi-k2 --topology 4x8-h200"
build/bin/k2c-plan kimi-k2 --topology 4x8-h200 >&2
step "building the other tools (the first time 5 to 12 minutes on two processors)"
build k2c k2c-opt k2c-lsp-server k2rt-run >&2
step "build/bin/k2c compile models/bundled -o build/demo"
build/bin/k2c compile models/bundled -o build/demo
step "build/demo/run generate"
build/demo/run generate --prompt "Then Jesus said unto them," -n 80
