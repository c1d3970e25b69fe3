"""check_cover.py FOLDER RUNS [SEED [TRANSPORTS]]: however programs differ, several ranks have the bits of one.

A covering array over the checkpoints of FOLDER: at most RUNS programs, drawn so that every pair of values of two ways
is in one of them if some program has both. Each is compared with the program of one rank byte by byte: every logit,
hidden states, experts, tokens. SEED draws others. TRANSPORTS are some of local,ucx,mpi; without them ranks are threads.
All that differ are named at the end.
"""
import functools
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

from bundles import Bundle, Failure, compiled, json_file, output
from check_invariance import draw
from check_placements import placement
from check_ranks import LIMITS, expect, topology
from start_ranks import __file__ as starter
from wide import checkpoint

WAYS = {
    "checkpoint": ("mixtral", "qwen3_moe", "deepseek_v2_lite", "deepseek_v3", "deepseek_v3_fp8", "kimi_k2", "olmoe",
                   "odd_mixtral", "odd_kimi_k2", "odd_minimax_m2", "odd_qwen3_alternating", "deepseek_v3_alternating",
                   "llama", "odd_smollm3", "odd_qwen2", "wide-llama", "wide-dsv3", "wide-qwen3moe"),
    "shape": ("2x1", "2x2", "3x3", "4x1", "4x2", "6x3", "6x2", "8x4", "8x2", "9x3"),
    "tp": (1, 2, 4),
    "etp": (1, 2),
    "vocab": (0, 1),
    "pp": (1, 2, 3),
    "replicas": (1, 2, 3),
    "redundant": ("none", "filled", "copies"),
    "placement": ("own", "random", "swapped"),
    "overlap": (0, 1),
    "compute": ("f32", "bf16"),
    "without": (None, "two-hop", "fusion", "launch-groups"),
    "prompts": (1, 2, 9),
    "chunk": (None, 1, 5),
    "threads": (1, 2),
}


def source_of(folder, name):
    """The checkpoint of that name: of FOLDER, or a wide one."""
    return checkpoint(name) if name.startswith("wide-") else os.path.join(folder, name)


@functools.cache
def model(folder, checkpoint):
    """Layers, routed experts, whether a cache in bf16 would have odd rows, which no program has, and what ranks divide
    that have parts of embedding and head: None where these are one weight."""
    with open(os.path.join(source_of(folder, checkpoint), "config.json")) as file:
        config = json.load(file)
    experts = (config.get(key) for key in ("n_routed_experts", "num_experts", "num_local_experts"))
    divided = None if config.get("tie_word_embeddings") else (config["vocab_size"], config["hidden_size"])
    return (config["num_hidden_layers"], next((one for one in experts if one), 0), config.get("kv_lora_rank", 0) % 2,
            divided)


def layout(folder, one):
    """The --layout of a program; None where there is none like that."""
    ranks, nodes = map(int, one["shape"].split("x"))
    layers, experts, _, divided = model(folder, one["checkpoint"])
    stages, group = one["pp"] * one["replicas"], one["tp"]
    if ranks % stages or one["pp"] > layers:
        return None
    each, of_node = ranks // stages, ranks // nodes
    if (each % of_node and of_node % each) or each % group or of_node % group:
        return None
    parts = one["etp"]  # of an expert
    if max(group, parts) > 1 and not one["checkpoint"].startswith("wide-"):
        return None  # one leaf, which no ranks divide
    if parts > 1 and (not experts or each % parts or of_node % parts):
        return None
    if one["vocab"] and (each == 1 or not divided or any(size % each for size in divided)):
        return None
    vocab = each if one["vocab"] else 1
    if each == 1 and (one["redundant"] != "none" or one["placement"] != "own" or one["overlap"]):
        return None
    if not experts:
        asks = one["redundant"] != "none" or one["placement"] != "own" or (one["overlap"] and group == 1)
        if each != group or asks:
            return None
        return f"tp={group},pp={one['pp']},replicas={one['replicas']},vocab={vocab},overlap={one['overlap']}"
    held = each // parts
    redundant = -experts % held if one["redundant"] != "none" else 0
    if one["redundant"] == "copies":
        redundant += held if redundant + held <= (held - 1) * experts else 0
    return (f"tp={group},ep={held},etp={parts},dp={each // group},pp={one['pp']},replicas={one['replicas']},"
            f"vocab={vocab},redundant={redundant},overlap={one['overlap']}")


def cover(folder, runs, chance, transports):
    """Programs, how many pairs are in them, and could be: each time the one with most that none before it has."""
    ways = {**WAYS, "transport": transports}
    drawn = ({way: chance.choice(values) for way, values in ways.items()} for _ in range(40000))
    numbers = {}  # of pairs, each of which is a bit
    possible = [(one, sum(1 << numbers.setdefault(pair, len(numbers))
                          for pair in itertools.combinations(one.items(), 2)))
                for one in drawn if layout(folder, one)]
    left, chosen = (1 << len(numbers)) - 1, []
    while left and len(chosen) < runs:
        best, pairs = max(possible, key=lambda each: (each[1] & left).bit_count())
        left &= ~pairs
        chosen.append(best)
    return chosen, len(numbers) - left.bit_count(), len(numbers)


class Ranks(Bundle):
    """A program of several ranks, started as a job of its transport."""

    def __init__(self, folder, transport):
        super().__init__(folder)
        ranks = self.manifest["topology"]["ranks"]
        run = [os.path.join(folder, "run")]
        self.command = {"local": run, "mpi": [os.path.join(folder, "launch.sh")],
                        "ucx": [sys.executable, starter, str(ranks), *run]}[transport]
        self.options = [] if transport == "mpi" else ["--transport", transport]

    def text(self, *arguments):
        return output([*self.command, *map(str, arguments), *self.options], timeout=300)


def run(folder, one, work):
    """Compares a program with that of one rank."""
    source, (ranks, nodes) = source_of(folder, one["checkpoint"]), map(int, one["shape"].split("x"))
    ways = ("--compute", one["compute"], *(("--without", one["without"]) if one["without"] else ()),
            *(("--cache", "f32") if model(folder, one["checkpoint"])[2] else ()))
    alone = compiled(source, *LIMITS, *ways)
    several = compiled(source, "--topology", topology(ranks, nodes), *LIMITS, *ways, "--layout", layout(folder, one))
    ranked = Ranks(several.folder, one["transport"])
    options = ["--threads", one["threads"], *(("--chunk", one["chunk"]) if one["chunk"] else ())]
    if one["placement"] != "own":
        path = os.path.join(work, "placement.json")
        with open(path, "w") as file:
            json.dump(placement(several, random.Random(3)), file)
        options += ["--placement", path + ("@2" if one["placement"] == "swapped" else "")]
    prompts = [draw(1 + (7 + i * 13) % 41, alone.manifest["model"]["vocab"], i) for i in range(one["prompts"])]
    longest = ",".join(map(str, max(prompts, key=len)))
    expect("logits", alone.batch_logits(prompts, "--all"), ranked.batch_logits(prompts, "--all", *options))
    for command in ("hidden", "routes"):
        expect(command, alone.json(command, "--prompt-ids", longest),
               ranked.json(command, "--prompt-ids", longest, *options))
    with json_file(prompts) as batch:
        generate = ("generate", "--batch-file", batch, "-n", 5, "--ignore-eos")
        ids = [[each["ids"] for each in bundle.json(*generate, *more)]
               for bundle, more in ((alone, ()), (ranked, options))]
    expect("tokens", *ids)


def main(folder, runs, seed="1", transports="local"):
    chosen, count, possible = cover(folder, int(runs), random.Random(int(seed)), transports.split(","))
    wrong = []
    for number, one in enumerate(chosen):
        said = " ".join(f"{way}={value}" for way, value in one.items())
        try:
            with tempfile.TemporaryDirectory() as work:
                run(folder, one, work)
            print(f"{number + 1}/{len(chosen)} equal: {said}", flush=True)
        except (Failure, subprocess.TimeoutExpired) as failure:
            wrong.append(said)
            print(f"{number + 1}/{len(chosen)} WRONG: {said}\n  {failure}", flush=True)
    print(f"{len(chosen)} programs with {count} of {possible} pairs of ways: {len(wrong)} differ")
    if wrong:
        sys.exit("\n".join(["check_cover.py: several ranks differ from one:", *wrong]))


if __name__ == "__main__":
    main(*sys.argv[1:])
