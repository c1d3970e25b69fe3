#!/usr/bin/env python3
"""Write models that differ from a given one in one node.

  mutations.py MODEL.onnx --out DIR [--seed N] [--count N] [--kind KIND,.. | --legal]

writes DIR/NNN/model.onnx and DIR/mutants.json: for each its kind, what was changed in one line, `difference`, the
largest of its logits in ONNX Runtime from the given model's, and `equal`, whether that is no more than 1e-5: such a
mutant says the same in other words, or differs only where prompts without padding do not show it. Kinds:

  attribute     axis, epsilon, scale, permutation, interleaved, k, normalisation, window, activation ..
  operator      another operator: Sin for Cos, Less for LessOrEqual, Sub for Add, ReduceSum for ReduceMean ..
  dropped       the node forwards an input: no renormalisation, no sign, no activation, no norm ..
  exchanged     two inputs or outputs: gate and up, halves, operands of MatMul, key and value ..
  constant      other numbers: scale, mask, frequencies, bounds of a slice, k of TopK, a weight transposed ..
  other value   another value of the same type and shape is read
  bias          the chosen experts are weighed with scores that have the bias
  caches        two caches leave the model under each other's names

With --legal they are decoders of the same family (rewrite/legal.py): another epsilon or theta in all layers, other
weights. Kinds take turns, places within a kind are drawn; changes that ONNX Runtime does not run are passed over.
"""
import argparse
import json
import random
import sys
from pathlib import Path

from rewrite.graph import load, ordered, set_nodes
from rewrite.legal import change
from rewrite.mutate import places
from rewrite.storage import same, save
from variants import copy_of, head_size, logits

EQUAL = 1e-5
TRIES = 40  # changes of a kind in a row that do not run


def changed(model, edit):
    """The mutated copy, its nodes in an order that works; nothing when the change makes a cycle."""
    candidate = copy_of(model)
    edit(candidate)
    try:
        set_nodes(candidate.graph, ordered(candidate.graph.node))
    except ValueError:
        return None
    return candidate


def difference(candidate, wanted, head):
    """How far the logits are from those wanted; nothing when ONNX Runtime does not run the model."""
    try:
        found = logits(candidate, head)
    except Exception:  # shapes or types that do not fit
        return None
    if any(a.shape != b.shape for a, b in zip(found, wanted)):
        return None
    return max(same(a, b) for a, b in zip(found, wanted))


def legal_mutants(model, seed, count):
    """Yields as `mutants` does: decoders of the same family with other numbers."""
    rng, head = random.Random(seed), head_size(model)
    wanted, made = logits(model, head), 0
    for _ in range(TRIES * count):
        kind, what, edit = change(model, rng)
        candidate = changed(model, edit) if kind else None
        far = difference(candidate, wanted, head) if candidate else None
        if far is not None:
            yield kind, what, candidate, far
            made += 1
        if made == count:
            return


def mutants(model, seed, count, kinds):
    """Yields (kind, what, mutated model, difference), kinds in turns, until there are `count` or no more places."""
    rng, head = random.Random(seed), head_size(model)
    wanted = logits(model, head)
    left = {kind: rng.sample(found, len(found)) for kind, found in places(model).items() if not kinds or kind in kinds}
    made = 0
    while made < count and any(left.values()):
        for kind in [k for k in sorted(left) if left[k]]:
            for _ in range(min(TRIES, len(left[kind]))):
                what, edit = left[kind].pop()
                candidate = changed(model, edit)
                far = difference(candidate, wanted, head) if candidate else None
                if far is not None:
                    yield kind, what, candidate, far
                    made += 1
                    break
            if made == count:
                return


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", type=Path)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=50)
    p.add_argument("--kind", help="kinds, separated by commas (default: all)")
    p.add_argument("--legal", action="store_true", help="mutants that are decoders of the same family")
    args = p.parse_args()
    kinds = set(args.kind.split(",")) if args.kind else set()
    original, listed = load(args.model), []
    found = (legal_mutants(original, args.seed, args.count) if args.legal
             else mutants(original, args.seed, args.count, kinds))
    for kind, what, candidate, far in found:
        name = f"{len(listed):03}"
        save(candidate, args.out / name, random.Random(0), False)
        listed.append({"model": name, "kind": kind, "what": what, "difference": float(f"{far:.3g}"),
                       "equal": far <= EQUAL})
        print(f"{name} {kind}: {what}: {'EQUAL, ' if far <= EQUAL else ''}{far:.3g}", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "mutants.json").write_text("[\n" + ",\n".join(json.dumps(m) for m in listed) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
