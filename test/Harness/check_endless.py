"""check_endless.py CHECKPOINT: a kernel that does not end is named, and so is one that fails.

The PTX of the first kernel of a copy of the bundle loops before it returns; its hash is right. A deadline ends the run
with exit 3 and names it with its rows. In another copy attention writes where there is no memory: what is said of the
call that finds it has the kernel and its layer.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bundles import Failure, compiled, output
from golden import Report

RETURN = re.compile(r"^\tret;$", re.MULTILINE)
HEAD = ".address_size 64\n"


def broken(bundle, folder, kernel, declared, instead):
    """A copy of the bundle in which the code of `kernel` has `instead` before it returns."""
    shutil.copytree(bundle.folder, folder)
    file = os.path.join("ptx", kernel["hash"] + ".ptx")
    with open(os.path.join(folder, file)) as code:
        text = code.read()
    assert len(RETURN.findall(text)) == 1
    text = RETURN.sub(instead + "\n\tret;", text.replace(HEAD, HEAD + declared, 1))
    with open(os.path.join(folder, file), "w") as code:
        code.write(text)
    output(["k2c-relist", folder, file])
    return folder


def failure_of(folder, *arguments):
    command = [os.path.join(folder, "run"), "logits", "--prompt-ids", "5,6,7", "--driver", "emulated", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, next((line for line in done.stderr.splitlines() if line.startswith("run: error")), "")


def check(source):
    report = Report(f"kernels of {source} that do not end")
    bundle = compiled(source, "--topology", "h200x1")
    kernels = bundle.manifest["kernels"]
    first = next(kernel for kernel in kernels if "embed" in kernel["name"])
    with tempfile.TemporaryDirectory() as top:
        spin = "$spin:\n\tst.global.b32 [spun], 0;\n\tbra.uni $spin;"
        folder = broken(bundle, os.path.join(top, "endless"), first, ".global .b32 spun;\n", spin)
        code, said = failure_of(folder, "--deadline", "2")
        report.equal(code, 3, "exit of an endless kernel")
        want = f"run: error: step 0: has not ended within 2 s, and kernel {first['name']} (3 rows) does not end; give"
        report.check(said.startswith(want), said)
        last = next(kernel for kernel in kernels if "attention" in kernel["name"])
        # The worker that says which kernel runs: others may come to it before.
        crash = ("{\n\t.reg .pred %first;\n\t.reg .b32 %cta, %thread;\n\tmov.u32 %cta, %ctaid.x;\n"
                 "\tmov.u32 %thread, %tid.x;\n\tmad.lo.s32 %thread, %cta, 1024, %thread;\n"
                 "\tsetp.lt.u32 %first, %thread, 32;\n\t@%first st.global.b32 [0], 0;\n\t}")
        code, said = failure_of(broken(bundle, os.path.join(top, "crash"), last, "", crash))
        report.equal(code, 3, "exit of a kernel that crashes")
        want = f", it had come to kernel {last['name']} (layer 0, 3 rows)"
        report.check("CUDA_ERROR_ILLEGAL_ADDRESS (700)" in said and said.endswith(want), said)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1]))
    except Failure as failure:
        sys.exit(f"check_endless.py: {failure}")
