#!/usr/bin/env python3
"""Write a model that computes the same as another and looks different.

  variants.py MODEL.onnx --out DIR [--seed N] [--only REWRITE,..] [--count N]

writes DIR/model.onnx, or DIR/SEED/model.onnx for seeds N, N+1, .. with --count, each by the rewrites in this order:

  opset       another version of the standard's operators, where onnx's converter has a way
  constants   small initializers become Constant nodes and Constant nodes initializers
  commute     operands of commutative operators swapped
  identity, casts, transposes     nodes that undo each other between a value and its readers
  functions   runs of nodes become functions of the model, also within each other
  rename      names of values, nodes, sizes; not of the model's inputs and outputs
  shuffle     another order of nodes and initializers
  typed       numbers in typed fields instead of bytes
  data        tensors outside in a file when they were inside, inside when they were outside

All by default. Every model is checked: by onnx.checker where it takes the given one (it knows no operators that ONNX
Runtime adds to the standard's domain), and by ONNX Runtime: logits of two prompts and a step of each within 1e-4. A
rewrite whose result fails is left out and named; without it the model is written.
"""
import argparse
import random
import sys
from pathlib import Path

import onnx

from make.session import Session, runnable
from rewrite import disguise, functions, storage
from rewrite.graph import load

ORDER = ("opset", "constants", "commute", "identity", "casts", "transposes", "functions", "rename", "shuffle", "typed")
REWRITES = {**{name: getattr(disguise, name) for name in
               ("constants", "commute", "identity", "casts", "transposes", "rename", "shuffle")},
            "functions": functions.functions, "typed": storage.typed}
PROMPTS, NEXT = ([5, 77, 23, 130, 4, 8, 61, 5, 90, 91], [100, 3, 51, 7, 7, 129, 64, 33, 12, 80]), (9, 71)
TOLERANCE = 1e-4


def copy_of(model):
    return onnx.ModelProto.FromString(model.SerializeToString())


def head_size(model):
    """The size of a head by the rotary tables of GroupQueryAttention, whose caches name it only."""
    tables = {n.input[7] for n in model.graph.node if n.op_type == "GroupQueryAttention"}
    return next((2 * t.dims[1] for t in model.graph.initializer if t.name in tables), 0)


def logits(model, head):
    """Logits of two prompts and of one more token of each in ONNX Runtime."""
    session = Session(runnable(model))
    session.head = head
    return session.batch(PROMPTS, NEXT)


def passes_checker(model):
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


def why_not(model, wanted, checked, head):
    """Why a rewritten model is none to keep; nothing when it is."""
    try:
        found = logits(model, head)
    except Exception as error:
        return f"ONNX Runtime refuses it: {str(error).splitlines()[0][:200]}"
    worst = max(storage.same(a, b) for a, b in zip(found, wanted))
    if worst > TOLERANCE:
        return f"logits differ by {worst:.2g}"
    return "" if not checked or passes_checker(model) else "onnx.checker refuses it"


def vary(model, seed, chosen):
    """(rewritten model, [(rewrite, why it was left out)])"""
    head, checked, skipped = head_size(model), passes_checker(model), []
    wanted = logits(model, head)
    for name in [n for n in ORDER if n in chosen]:
        rng = random.Random(f"{seed} {name}")
        candidate = copy_of(model)
        if name == "opset":
            candidate = storage.opset(candidate, rng)
        else:
            REWRITES[name](candidate, rng)
        reason = why_not(candidate, wanted, checked, head) if candidate else "the converter has no way"
        if reason:
            skipped.append((name, reason))
        else:
            model = candidate
    return model, skipped


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, help="write so many, each into a folder named by its seed")
    p.add_argument("--only", help="rewrites, separated by commas (default: all)")
    args = p.parse_args()
    chosen = set(args.only.split(",")) if args.only else {*ORDER, "data"}
    unknown = chosen - {*ORDER, "data"}
    if unknown:
        p.error(f"no rewrite {', '.join(sorted(unknown))}")
    original = load(args.model)
    outside = storage.is_outside(args.model)
    for seed in range(args.seed, args.seed + (args.count or 1)):
        model, skipped = vary(original, seed, chosen)
        folder = args.out / str(seed) if args.count else args.out
        storage.save(model, folder, random.Random(f"{seed} data"), outside != ("data" in chosen))
        left = "".join(f"; without {name}: {reason}" for name, reason in skipped)
        print(f"{folder}: {len(model.graph.node)} nodes, {len(model.functions)} functions{left}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
