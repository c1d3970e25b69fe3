"""Two depths of one model make programs of one size: same_size.py CONFIG WORK FIELD=VALUE... -- DEPTH DEPTH.

Writes CONFIG with the fields, and num_hidden_layers as each depth, below WORK; compiles both to the runtime form; their
lines and their kernels must be as many.
"""

import json
import os
import subprocess
import sys


def size(config, folder, fields, depth):
    """(lines, kernels) of the runtime form."""
    os.makedirs(folder, exist_ok=True)
    with open(config, encoding="utf-8") as file:
        changed = dict(json.load(file), **fields, num_hidden_layers=depth)
    with open(folder + "/config.json", "w", encoding="utf-8") as file:
        json.dump(changed, file)
    command = ["k2c", "compile", folder, "-o", "-", "--compute", "f32", "--emit", "runtime"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    return text.count("\n"), text.count("rt.kernel @")


def main(config, work, *rest):
    fields = {name: int(value) for name, value in (item.split("=") for item in rest[: rest.index("--")])}
    depths = [int(depth) for depth in rest[rest.index("--") + 1 :]]
    sizes = [size(config, f"{work}/{depth}", fields, depth) for depth in depths]
    print(*(f"{depth} layers: {lines} lines, {kernels} kernels" for depth, (lines, kernels) in zip(depths, sizes)))
    if len(set(sizes)) != 1:
        sys.exit("the sizes differ")


main(*sys.argv[1:])
