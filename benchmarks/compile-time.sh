#!/bin/bash
# Time and peak memory of compiling Kimi K2 (61 layers) from config.json only, and what the layers cost: the same model
# with 8 of them. Medians of five runs. Usage: benchmarks/compile-time.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 - build/bin/k2c models/configs/kimi-k2 <<'PYTHON'
import json, os, re, statistics, subprocess, sys, tempfile, time

tool, model = sys.argv[1:]


def compile_once(config, out):
    """Seconds and peak bytes of one run, as wait4 tells them."""
    begin = time.monotonic()
    command = [tool, "compile", config, "-o", "-", "--compute", "f32", "--emit", "runtime"]
    process = subprocess.Popen(command, stdout=out)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{tool} compile {config}: exit {process.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def report(name, config, folder):
    path = os.path.join(folder, "runtime.mlir")
    runs = []
    for _ in range(5):
        with open(path, "w") as out:
            runs.append(compile_once(config, out))
    with open(path) as file:
        text = file.read()
    seconds, peak = (statistics.median(column) for column in zip(*runs))
    kernels, functions = (len(re.findall(pattern, text)) for pattern in (r"rt\.kernel @", r"func\.func .*@"))
    print(f"{name}: {seconds:.3f} s, peak {peak / 1e6:.0f} MB, {kernels} kernels, {functions} functions, "
          f"{text.count(chr(10))} lines")
    return seconds


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(model, "config.json")) as file:
        config = json.load(file)
    few = os.path.join(folder, "few")
    os.mkdir(few)
    with open(os.path.join(few, "config.json"), "w") as file:
        json.dump({**config, "num_hidden_layers": 8}, file)
    layers = config["num_hidden_layers"]
    difference = report(f"{layers} layers", model, folder) - report("8 layers", few, folder)
    print(f"t({layers} layers) - t(8 layers) = {difference:.3f} s")
PYTHON
