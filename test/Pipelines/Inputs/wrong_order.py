"""Runs each pass on each form of a model, and prints what it says of the forms that it does not take.

usage: wrong_order.py MODEL, which is compiled to each form
"""
import subprocess
import sys

TENSORS = ["model", "planned", "distributed"]
TAKES = {
    "set-numerics": TENSORS, "attach-plan": [*TENSORS, "scheduled", "runtime"], "absorb-mla": TENSORS,
    "sample-on-device": ["planned", "distributed"],
    "shard-attention": ["planned", "distributed"], "shard-experts": ["planned", "distributed"],
    "partition-stages": ["distributed"], "bound-dispersion": ["distributed"],
    "form-kernels": ["distributed", "scheduled"],
    **dict.fromkeys(["choose-tiles", "group-launches", "assign-memory", "assign-slots", "certify-memory",
                     "emit-kernels", "lower-to-rt"], ["scheduled"]),
    "prefetch-weights": ["runtime"], "rt-to-llvm": ["runtime"],
}


def output(command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


def main(model):
    forms = {form: output(["k2c", "compile", model, "-o", "-", "--emit", form, "--target", "x86-64-v3"])
             for form in [*TENSORS, "scheduled", "runtime"]}
    forms["llvm"] = output(["k2c-opt", "--llvm-form"], forms["runtime"])
    for name, takes in TAKES.items():
        for form, text in forms.items():
            done = subprocess.run(["k2c-opt", f"--{name}"], input=text, text=True, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
            if (done.returncode == 0) != (form in takes and (name, form) != ("absorb-mla", "model")):
                sys.exit(f"{name} on the {form} form ends with {done.returncode}: {done.stderr}")
            if done.returncode:
                print(f"{form}: {done.stderr.splitlines()[0].split('error: ')[1]}")


main(sys.argv[1])
