"""check_identity.py SOURCE [k2c compile options]: a compiled program says everywhere which numerics it was made of.

The numerics version is one constant, K2RT_NUMERICS_VERSION of runtime/include/k2rt/numerics.h. Read and compared with
each other: that constant, the attribute nn.numerics of the IR, manifest.json (version and id), `run info`, and what
`k2c --version`, `k2c-plan --version` and `run --version` print. The other parts of the identity, too: compute type,
form of latent attention and class of the IR are those of the manifest. `k2c diff` shows a bundle of another version.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bundles import Failure, compiled, form
from golden import Report

HEADER = os.path.join(os.path.dirname(__file__), "../../runtime/include/k2rt/numerics.h")
IN_HEADER = r"^#define K2RT_NUMERICS_VERSION (\d+)$"
IN_IR = r'nn\.numerics = #nn\.numerics<version = (\d+), compute = (\w+), mla = (\w+), class = "([^"]+)">'


def find(pattern, text, place):
    """The groups of the only match."""
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise Failure(f"{place}: {len(found)} matches of {pattern}")
    return found[0]


def printed(program):
    """The numerics version that `program --version` prints."""
    done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return int(find(r", numerics (\d+)[,)]", done.stdout, program))


def differences(report, bundle):
    """k2c diff of the bundle and a copy whose manifest states the version before."""
    numerics = bundle.manifest["numerics"]
    version, other = numerics["version"], numerics["version"] - 1
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        shutil.copytree(bundle.folder, copy, ignore=shutil.ignore_patterns("weights"))
        edited = dict(numerics, version=other, id=numerics["id"].replace(f"v{version}/", f"v{other}/"))
        with open(os.path.join(copy, "manifest.json"), "w") as file:
            json.dump(dict(bundle.manifest, numerics=edited), file)
        changed = {"/numerics/id": [numerics["id"], edited["id"]], "/numerics/version": [version, other]}
        for right, code, want in [(bundle.folder, 0, {}), (copy, 1, changed)]:
            done = subprocess.run(["k2c", "diff", bundle.folder, right, "--json"], stdout=subprocess.PIPE, text=True)
            report.equal(done.returncode, code, "k2c diff's exit code")
            report.equal(json.loads(done.stdout)["manifest"], want, "k2c diff")


def check(source, *options):
    report = Report(f"identity of {source} {' '.join(options)}")
    bundle = compiled(source, *options)
    numerics = bundle.manifest["numerics"]
    with open(HEADER) as file:
        version = int(find(IN_HEADER, file.read(), HEADER))
    ir = find(IN_IR, form(source, "model", *options), "the model form")
    parts = numerics["id"].split("/")
    report.equal(int(ir[0]), version, "version in the IR")
    report.equal(numerics["version"], version, "version in manifest.json")
    report.equal(parts[0], f"v{version}", "version in the id of manifest.json")
    report.equal(bundle.json("info")["numerics"], numerics, "run info")
    for program in ("k2c", "k2c-plan", os.path.join(bundle.folder, "run")):
        report.equal(printed(program), version, f"{os.path.basename(program)} --version")
    report.equal(tuple(numerics[key] for key in ("compute", "mla", "class")), ir[1:], "compute, mla, class")
    latent = "mla.attention" in form(source, "model", *options)
    report.equal(parts[1:], [ir[1], ir[2] if latent else "none", ir[3]], "compute, mla, class in the id")
    differences(report, bundle)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_identity.py: {failure}")
