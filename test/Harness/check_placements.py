"""check_placements.py CHECKPOINT RANKSxNODES REDUNDANT: wherever experts are, the bits are those of one rank.

Random placements, with copies of experts in REDUNDANT slots beyond the experts or in fewer: compiled in, given to a run
in place of the bundle's, another from some step on, and one for prompts beside one for generated tokens.
"""
import json
import os
import random
import sys
import tempfile

from bundles import Failure, compile_into, compiled
from check_invariance import draw
from check_ranks import LIMITS, LOCAL, expect, topology


def slots(experts, ranks, held, chance):
    """A list of each rank's experts: every expert somewhere, none twice on a rank, some slots empty."""
    lists = [[None] * held for _ in range(ranks)]
    places = [(rank, slot) for rank in range(ranks) for slot in range(held)]
    chance.shuffle(places)
    for i, (rank, slot) in enumerate(places):
        expert = i if i < experts else chance.randrange(experts)
        if i < experts or (chance.random() > 1 / 8 and expert not in lists[rank]):
            lists[rank][slot] = expert
    return lists


def placement(bundle, chance, phases=("both",)):
    """Another one for the program of `bundle`."""
    manifest = bundle.manifest
    own = json.load(open(os.path.join(bundle.folder, "placement.json")))
    facts, ranks, layers = manifest["placement"], own["ranks"], own["layers"]  # ranks of a stage
    held = facts["slots"] // ranks
    return {"format": 1, "model": manifest["model"]["name"], "experts": facts["experts"], "ranks": ranks,
            "layers": {layer: {phase: slots(facts["experts"], ranks, held, chance) for phase in phases}
                       for layer in layers}}


def main(checkpoint, shape, redundant):
    ranks, nodes = (int(part) for part in shape.split("x"))
    layout = ("--layout", f"ep={ranks},dp={ranks},redundant={redundant}")
    several = compiled(checkpoint, "--topology", topology(ranks, nodes), *LIMITS, *layout)
    one = compiled(checkpoint, *LIMITS)
    prompts = [draw(1 + i * 13 % 41, one.manifest["model"]["vocab"], i) for i in range(9)]
    reference = one.batch_logits(prompts, "--all")
    tokens = one.generate(prompts[3][:9], 8)["ids"]
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, phases in enumerate((("both",), ("both",), ("prefill", "decode"))):
            files.append(os.path.join(folder, f"p{i}@{i}.json"))  # a name with an @ of its own
            json.dump(placement(several, chance, phases), open(files[-1], "w"))
        for given in ((files[0],), (f"{files[1]}@2",), (files[2],), (files[0], f"{files[1]}@1", f"{files[2]}@3")):
            options = [option for file in given for option in ("--placement", file)]
            expect(f"logits with {given}", reference,
                   several.batch_logits(prompts, "--all", *LOCAL, "--chunk", 5, *options))
            expect(f"tokens with {given}", tokens, several.generate(prompts[3][:9], 8, *LOCAL, *options)["ids"])
        placed = compile_into(os.path.join(folder, "out"), checkpoint, "--topology", topology(ranks, nodes), *LIMITS,
                              "--placement", files[0])
        expect("logits of a program with a placement", reference, placed.batch_logits(prompts, "--all", *LOCAL))
    print(f"{checkpoint}: {ranks} ranks have the bits of one wherever experts are")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_placements.py: {wrong}")
