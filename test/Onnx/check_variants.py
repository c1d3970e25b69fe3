#!/usr/bin/env python3
"""Hold k2c to what means nothing: variants of a model (variants.py) are the model.

  check_variants.py MODEL.onnx .. [--seed N] [--count N] [--store DIR]

The model form of each variant is the original's but for the module's name, and so are the bits of a prompt's logits.
Models that k2c refuses are passed over, and counted; those in bfloat16 are left out, since ONNX Runtime does not run
them. Of models with weights in a file of their own, --store keeps the variants as DIR/MODEL-SEED.onnx, whose weights
are in the model's file.
"""
import argparse
import random
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from judge import computed, form, golden_of
from rewrite.graph import load
from rewrite.splices import as_stored
from rewrite.storage import is_outside, save
from variants import ORDER, copy_of, vary


def unnamed(text):
    return re.sub(r'module @(\w+|"[^"]*")', "module @model", text)


def check_variant(folder, path, seed, wanted, rows, kept, options):
    """What is wrong with a variant; nothing where it is the original."""
    model, _ = vary(load(path), seed, {*ORDER, "data"})
    if kept and is_outside(path):
        kept.mkdir(exist_ok=True)
        (kept / f"{path.parent.name}-{seed}.onnx").write_bytes(as_stored(copy_of(model), path))
    save(model, folder, random.Random(f"{seed} data"), not is_outside(path))
    found, why = form(folder / "model.onnx", *options)
    if found is None:
        return f"refused: {why}"
    if unnamed(found) != wanted:
        return "another model form"
    return "" if all(map(np.array_equal, computed(folder / "model.onnx", *options)[0], rows)) else "other logits"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", type=Path, nargs="+")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=1)
    p.add_argument("--store", type=Path, help="a folder for variants that tests take without the package onnx")
    args = p.parse_args()
    same = wrong = refused = 0
    for path in map(Path.resolve, args.models):
        if golden_of(path)["dtype"] == "bfloat16":
            continue
        options = ()
        text, why = form(path)
        if text is None and "use --widen" in why:
            options = ("--widen",)
            text, why = form(path, *options)
        refused += text is None
        if text is None:
            continue
        rows, _ = computed(path, *options)
        for seed in range(args.seed, args.seed + args.count):
            with tempfile.TemporaryDirectory() as folder:
                said = check_variant(Path(folder), path, seed, unnamed(text), rows, args.store, options)
            same, wrong = same + (not said), wrong + bool(said)
            if said:
                print(f"{path.parent.name}, seed {seed}: {said}", flush=True)
    print(f"{same} variants are their models, {wrong} are not; {refused} models are refused")
    return 1 if wrong or not same else 0


if __name__ == "__main__":
    sys.exit(main())
