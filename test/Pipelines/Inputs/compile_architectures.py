"""compile_architectures.py MODEL FOLDER: each kernel of the model as machine code of each architecture, without spills.

What ptxas spills is refused by the compile; that it was asked is what the index says.
"""
import json
import pathlib
import subprocess
import sys

model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
described = subprocess.run(["k2c", "topologies", "h200x1"], check=True, capture_output=True, text=True).stdout
for arch in ("sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"):
    topology, out = folder / f"{arch}.yaml", folder / arch
    topology.write_text(described.replace('arch: "sm_90a"', f'arch: "{arch}"'))
    command = ["k2c", "compile", model, "--topology", topology, "--emit", "ptx", "--jobs", "1", "-o", out]
    subprocess.run([*command, "--cache-dir", folder / "cache"], check=True)
    kernels = json.loads((out / "ptx" / "index.json").read_text())
    assert len(kernels) > 10 and {entry["arch"] for entry in kernels.values()} == {arch}, (arch, len(kernels))
    assert all(entry["registers"] > 0 and entry["spill_bytes"] == 0 for entry in kernels.values()), (arch, kernels)
    assert {path.stem for path in (out / "cubin").glob("*.cubin")} == set(kernels), arch
    print(f"{arch}: {len(kernels)} kernels, {max(entry['registers'] for entry in kernels.values())} registers at most")
