#!/bin/bash
# From exec to the first token of the bundled model, files in the page cache: median of twenty runs of `generate -n 1`.
# Usage: benchmarks/start-time.sh [BUNDLE]      (default: compiles models/bundled into a temporary folder)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=${1:-$folder/bundle}
[ $# -gt 0 ] || build/bin/k2c compile models/bundled -o "$bundle" --compute f32
python3 - "$bundle" <<'PYTHON'
import statistics, subprocess, sys, time

command = [sys.argv[1] + "/run", "generate", "--prompt", "Then Jesus said unto them,", "-n", "1", "--ignore-eos"]


def first_token():
    """Milliseconds from exec until the first byte of text can be read."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as run:
        found = run.stdout.read(1)
        elapsed = time.monotonic() - begin
        run.stdout.read()  # a closed pipe would end the program
    if run.wait() or not found:
        sys.exit(f"{' '.join(command)}: exit {run.returncode}, no text")
    return elapsed * 1e3


first_token()  # the files are read now
times = sorted(first_token() for _ in range(20))
print(f"exec to first token: median {statistics.median(times):.1f} ms ({times[0]:.1f} .. {times[-1]:.1f}) of 20 runs")
PYTHON
