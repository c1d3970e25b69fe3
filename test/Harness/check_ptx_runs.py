"""check_ptx_runs.py CHECKPOINT KERNEL: DIR/ptx is what runs, and a byte of code that was changed is refused.

In a copy of the bundle of a GPU, one addition of KERNEL's PTX becomes a subtraction, or the first byte of its cubin
another. files.json has the old hash, so both are refused. Once it has the new one, the emulated driver gives other
tokens, of the PTX alone: no cubin runs there. Not every addition is one that these steps do, so some are tried.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from bundles import Bundle, Failure, compiled, output
from golden import Golden

COUNT, PLACES = 8, 8
ADD, SUBTRACT = b"add.rn.ftz.f32", b"sub.rn.ftz.f32"


def kernel_hash(bundle, name):
    return next(kernel["hash"] for kernel in bundle.manifest["kernels"] if kernel["name"] == name)


def replace(path, data):
    """The file anew, as the old one is a link into another bundle."""
    os.remove(path)
    with open(path, "wb") as file:
        file.write(data)


def subtracted(text):
    """Copies of a PTX text with one sum of floats a difference: PLACES of its sums, apart from one another."""
    parts = text.split(ADD)
    if len(parts) == 1:
        raise Failure("the kernel's PTX adds no floats")
    for place in sorted({1 + place * (len(parts) - 1) // PLACES for place in range(PLACES)}):
        yield ADD.join(parts[:place]) + SUBTRACT + ADD.join(parts[place:])


def refused(folder, file):
    run = [os.path.join(folder, "run"), "generate", "--prompt-ids", "1", "-n", "1", "--driver", "emulated"]
    done = subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode == 1 and f"{file}: hashes to " in done.stderr


def tokens_with(bundle, file, code, ids):
    """The tokens of a copy of `bundle` with other bytes in `file`, once it is listed with them."""
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "bundle")
        shutil.copytree(bundle.folder, folder, copy_function=os.link, symlinks=True)
        replace(os.path.join(folder, file), code)
        if not refused(folder, file):
            raise Failure(f"{file} was changed, and is not refused")
        with open(os.path.join(folder, "files.json"), "rb") as listed:
            replace(os.path.join(folder, "files.json"), listed.read())
        output(["k2c-relist", folder, file])
        return Bundle(folder).generate(ids, COUNT)["ids"]


def check(source, kernel):
    bundle, ids = compiled(source, "--topology", "h200x1"), Golden(source).prompts[0]["ids"]
    tokens = bundle.generate(ids, COUNT)["ids"]
    name = kernel_hash(bundle, kernel)
    with open(os.path.join(bundle.folder, "ptx", name + ".ptx"), "rb") as file:
        texts = subtracted(file.read())
    if not any(tokens_with(bundle, f"ptx/{name}.ptx", text, ids) != tokens for text in texts):
        raise Failure(f"ptx/{name}.ptx was changed, and the tokens are the same: {tokens}")
    cubin = os.path.join(bundle.folder, "cubin", name + ".cubin")
    if (bundle.manifest["device"]["code"] == "cubin") != os.path.exists(cubin):
        raise Failure(f"{cubin} and the manifest's device.code do not agree")
    if os.path.exists(cubin):
        with open(cubin, "rb") as file:
            code = b"!" + file.read()[1:]
        if tokens_with(bundle, f"cubin/{name}.cubin", code, ids) != tokens:
            raise Failure("a cubin was changed, and the tokens are others")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("kernel")
    arguments = parser.parse_args()
    try:
        check(arguments.source, arguments.kernel)
    except Failure as failure:
        sys.exit(f"check_ptx_runs.py: {failure}")
