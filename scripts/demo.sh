#!/bin/bash
# From a fresh machine to generated text: installs what is missing, builds k2c, compiles the bundled model for this
# machine and generates with the program that comes out.
#   scripts/demo.sh
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prepare
step "building all tools (the first time 7 to 15 minutes on two processors)"
build k2c k2c-plan k2c-opt k2c-lsp-server k2rt-run >&2
step "build/bin/k2c compile models/bundled -o build/demo"
build/bin/k2c compile models/bundled -o build/demo
step "build/demo/run generate"
build/demo/run generate --prompt "Then Jesus said unto them," -n 80
