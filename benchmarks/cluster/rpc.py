"""Two ranks on two hosts against llama.cpp with its RPC backend on the same hosts."""
import json
import os
from statistics import median
from typing import NamedTuple

from bundles import output
from hosts import Hosts
from launched import Launched
from measure import Failure
from measure.points import MODELS

from .bench import both, probe
from .llama import RemoteLlama

TITLE = "Beside llama.cpp's RPC backend"
OVER_HOSTS = True
MBIT = 400
SHARE = 0.9
STEPS, REPEATS = 32, 3
ONE_RANK = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs",
                        "performance.md")
TEXT = """\
Two hosts, a link of {mbit} Mbit/s ({probe:.0f} by the probe), the same bf16 weights of `benchmarks/checkpoints.py` on
both sides, which take turns at each point; one worker or thread a host. {k2c}: `bench` of two ranks in the layout that
`k2c compile` has without `--layout`. Each rank has half of the experts of each layer, half of the sequences with their
cache, and all other weights; both compute at the same time, and rows cross twice in each layer with experts. llama.cpp
({peer}, built as for [Performance](performance.md), with its RPC backend): `llama-bench` at batch 1,
`llama-batched-bench` elsewhere, on the first host, and `ggml-rpc-server` on the second. Each host has half of the
layers with their cache, the first one the head, too; the two halves run in turn, and rows cross twice a step.
"processor": the first half is in the program itself. "server": it is on the second host, and the other half in one more
server beside the program, which only waits; of prompts of more than 512 tokens together both halves then work on parts
at the same time. The last column has the fastest way at each point, with flash attention or without, as the first round
tried it out.

one rank: the ratio in [Performance](performance.md), one host with a thread for each of its processors on both sides;
for prefill of 8 x 128 tokens it is that of one prompt of 512. The aim is {share} of it.

| model | tokens/s | k2c | llama.cpp | ratio | one rank | aim {share} of it | llama.cpp's layers |
|---|---|---|---|---|---|---|---|
"""


class Shape(NamedTuple):
    """A point: sequences, tokens each has read, whether reading them is what is timed; that of docs/performance.md."""
    title: str
    batch: int
    context: int
    prefill: bool
    one_rank: str


POINTS = {point.title: point for point in (
    Shape("decode, batch 1", 1, 0, False, "decode, batch 1"),
    Shape("decode, batch 8 at 128", 8, 128, False, "decode, batch 8 at 128"),
    Shape("decode, batch 32 at 128", 32, 128, False, "decode, batch 32 at 128"),
    Shape("prefill 8 x 128", 8, 128, True, "prefill 512"))}


def own_rate(run, point):
    """Tokens/s of k2c."""
    if point.prefill:
        words = ("--prompts", point.batch, "--prefill", point.context, "--decode", 0, "--context", 1)
    else:
        words = ("--prefill", 0, "--decode", STEPS, "--batch", point.batch, "--context", max(1, point.context))
    said = json.loads(run.output("bench", *map(str, words), "--repeat", str(REPEATS), "--trust", "--json"))
    return said["prefill_tokens_per_s" if point.prefill else "decode_tokens_per_s"]


def measure(bench):
    try:
        peer = RemoteLlama(bench)
    except Failure as missing:
        bench.say(f"rpc is left out: {missing}")
        return
    longest = max(point.context for point in POINTS.values()) + STEPS
    limits = ("--max-sequences", max(point.batch for point in POINTS.values()), "--max-context", longest + 1)

    def point(number, model):
        checkpoint = bench.checkpoint(model)
        bundle = bench.bundle(checkpoint, 2, 1, *limits, mbit=MBIT)
        first = next((found for found in bench.read("rpc") if found["key"] == model), None)
        found = {"release": peer.release, "k2c": {}, "llama.cpp": {}, "ways": first["ways"] if first else {}}
        with Hosts(2, mbit=MBIT) as hosts:
            found["probe_mbit"] = probe(hosts)
            for title, shape in POINTS.items():
                if title not in found["ways"]:
                    found["ways"][title] = peer.best_way(hosts, checkpoint, shape, STEPS)
                way = found["ways"][title]
                sides = {"k2c": lambda: own_rate(Launched(bundle, hosts, "ucx"), shape),
                         "llama.cpp": lambda: peer.rate(hosts, checkpoint, shape, way, STEPS, REPEATS)}
                for side in sides if number % 2 else reversed(sides):
                    found[side][title] = sides[side]()
        return found

    bench.rounds("rpc", MODELS, point)


def one_rank_ratios(model):
    """Point -> how many times as fast as llama.cpp one rank is, by docs/performance.md."""
    with open(ONE_RANK) as file:
        part = file.read().partition(f"\n### {model}, bf16\n\n|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]
    if not rows or "llama.cpp" not in rows[0]:
        return {}
    at = rows[0].index("ratio", rows[0].index("llama.cpp"))
    return {row[0]: float(row[at]) for row in rows[2:] if row[at]}


def table(bench, points):
    releases = ", ".join(sorted({point["release"] for point in points}))
    text = TEXT.format(mbit=MBIT, probe=median(point["probe_mbit"] for point in points), share=SHARE, peer=releases,
                       k2c=output([bench.tool, "--version"]).split(",")[0])
    for model in dict.fromkeys(point["key"] for point in points):
        of_model, one_rank = [point for point in points if point["key"] == model], one_rank_ratios(model)
        for title, shape in POINTS.items():
            ratio = median(p["k2c"][title] / p["llama.cpp"][title] for p in of_model)
            place, flash = of_model[0]["ways"][title]
            sides = " | ".join(both([p[side][title] for p in of_model], 1, best=max) for side in ("k2c", "llama.cpp"))
            text += f"| {model} | {title} | {sides} | {ratio:.2f} |"
            wanted = one_rank.get(shape.one_rank)
            text += f" {wanted:.2f} | {SHARE * wanted:.2f} {'met' if ratio >= SHARE * wanted else 'missed'} |" \
                if wanted else " | |"
            text += f" {place}{', flash attention' if flash == '1' else ''} |\n"
    return text
