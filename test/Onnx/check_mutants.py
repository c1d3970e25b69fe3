#!/usr/bin/env python3
"""Hold k2c to mutants of ONNX models: each is refused, or computes what ONNX Runtime computes on the mutant.

  check_mutants.py MODEL.onnx .. [--seed N] [--count N] [--kind KIND,..] [--legal] [--keep DIR]

makes --count mutants of each model (mutations.py) and prints a line for each that k2c compiles to something else, and a
table. Fails when there is one; with --legal also when k2c refuses more than one of twenty: these mutants are decoders
of the same family with other numbers. Mutants that compute something else are kept in DIR. Models in 16 bits are passed
over: what ONNX Runtime computes of them is too far from what they say.
"""
import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from judge import OWN_ERRORS, Failure, apart, computed, expected, golden_of, ids, largest, own_error
from mutations import legal_mutants, mutants
from rewrite.graph import load
from rewrite.splices import as_stored, splices
from rewrite.storage import save
from variants import copy_of

LEGAL_REFUSED = 0.05
LONGEST = 20000  # bytes of a mutant that is stored


def tolerance(path, rows):
    """How far logits may be, of the largest of them: by what golden.json beside the model measured."""
    return 2 * OWN_ERRORS * own_error(golden_of(path)) / largest(rows)  # two sides, each so far from the exact logits


def verdict(folder, candidate, tolerated):
    """(right, refused or WRONG; what there is to say)"""
    theirs = expected(candidate)
    save(candidate, folder, random.Random(0), False)
    try:
        mine, why = computed(folder / "model.onnx")
        if mine is None and "use --widen" in why:
            mine, why = computed(folder / "model.onnx", "--widen")
    except (Failure, subprocess.TimeoutExpired) as failure:
        return "WRONG", f"ends otherwise than in an error: {str(failure)[:300]}"
    if mine is None:
        return "refused", why
    off = apart(mine, theirs)
    return ("right" if off <= tolerated else "WRONG"), f"{off:.2g} of the largest logit from ONNX Runtime"


def row(rows):
    """The last row in JSON."""
    return [float(f"{value:.7g}") for value in rows[-1]]


def store(file, path, what, candidate, tolerated, legal):
    """Adds a line for Harness/check_onnx_mutants.py, unless it is long or some logit is no finite number."""
    rows = expected(candidate)
    if any(r is None or not np.isfinite(r).all() for r in rows):
        return
    changed = as_stored(copy_of(candidate), path)
    line = {"model": path.parent.name, "what": what, **({"legal": True} if legal else {}),
            "splices": splices(path.read_bytes(), changed), "tolerated": float(f"{tolerated * largest(rows):.3g}"),
            "rows": [{"ids": some, "logits": row(r)} for some, r in list(zip(ids(), rows))[1:]]}
    text = json.dumps(line)
    if len(text) <= LONGEST:
        with open(file, "a") as out:
            out.write(text + "\n")


def judge_model(path, args, found):
    original = load(path)
    tolerated = tolerance(path, expected(original))
    kinds = set(args.kind.split(",")) if args.kind else set()
    made = (legal_mutants(original, args.seed, args.count) if args.legal
            else mutants(original, args.seed, args.count, kinds))
    for number, (kind, what, candidate, far) in enumerate(made):
        with tempfile.TemporaryDirectory() as folder:
            outcome, said = verdict(Path(folder), candidate, tolerated)
            name = f"{path.parent.name}-{args.seed}-{number:03}"
            if outcome == "WRONG" and args.keep:
                shutil.copytree(folder, args.keep / name, dirs_exist_ok=True)
        if args.store and outcome != "WRONG":
            store(args.store, path, what, candidate, tolerated, args.legal)
        found.append((kind, outcome))
        if outcome == "WRONG" or args.verbose:
            print(f"{outcome} {name}: {kind}: {what} (moves logits by {far:.3g}): {said}", flush=True)


def table(found):
    lines = [f"{'':14}{'right':>8}{'refused':>9}{'WRONG':>7}"]
    for kind in [*sorted({k for k, _ in found}), "all"]:
        outcomes = [outcome for k, outcome in found if kind in (k, "all")]
        counts = [outcomes.count(outcome) for outcome in ("right", "refused", "WRONG")]
        lines.append(f"{kind:14}{counts[0]:8}{counts[1]:9}{counts[2]:7}")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", type=Path, nargs="+")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--kind", help="kinds of mutations.py, separated by commas (default: all)")
    p.add_argument("--legal", action="store_true", help="mutants that are decoders, too")
    p.add_argument("--keep", type=Path, help="a folder for mutants that compute something else")
    p.add_argument("--store", type=Path, help="a file to which mutants are added for tests without the package onnx")
    p.add_argument("--verbose", action="store_true", help="a line for every mutant")
    args = p.parse_args()
    found = []
    for path in map(Path.resolve, args.models):
        if golden_of(path)["dtype"] == "float32":
            judge_model(path, args, found)
    print(table(found))
    wrong, refused = (sum(o == outcome for _, o in found) for outcome in ("WRONG", "refused"))
    return 1 if wrong or args.legal and refused > LEGAL_REFUSED * len(found) else 0


if __name__ == "__main__":
    sys.exit(main())
