"""Placements by `k2c place` for a skewed router, without copies of experts and with: bytes between nodes, and loads."""
import json
import os
import tempfile
from statistics import median

from bundles import output

from .bench import both

TITLE = "Placement of a skewed router"
OVER_HOSTS = False
NODES, PER_NODE = 4, 2
AIM_OF_BYTES, AIM_OF_LOAD = 0.75, 1.15
PROMPTS, TOKENS, NEW_TOKENS = 128, 24, 8
SHARES = (0.9, 0.98)
TEXT = """\
`generate --batch-file FILE -n {new}` of {prompts} prompts of {tokens} random tokens on {nodes} nodes of {per_node}
ranks, of `benchmarks/checkpoints.py qwen3moe --skewed SHARE` in bf16, whose routers choose sets of experts together
that are far apart in the order of ids, the more the closer SHARE is to 1. Statistics of some prompts give the
placements (`k2c place --objective nodes`), counters of others the numbers; rounds are other prompts. Copies: in a
program with `redundant={ranks}` in its layout, one more slot a rank. load: rows of the fullest rank over the mean, of
the whole run. The aims are {bytes} of the linear placement's bytes, and with copies a load of {load} with no more bytes
than without.

| SHARE | placement | MB between nodes | of the linear one | nodes of a token | load | the worst layer's | aim |
|---|---|---|---|---|---|---|---|
"""
SIDES = {"linear": "linear", "placed": "by k2c place", "copies": "by k2c place, with copies"}


def counted(bundle, prompts, folder, *options):
    """Payload between nodes, nodes of a token and loads of a run."""
    path = os.path.join(folder, "counters.json")
    generate(bundle, prompts, "--counters", path, *options)
    with open(path) as file:
        found = json.load(file)
    rows = [rank["expert_rows"] for rank in found["ranks"]]
    return {"bytes": found["tiers"]["network"]["payload_bytes"], "nodes": found["nodes_per_token"]["mean"],
            "load": max(rows) * len(rows) / sum(rows),
            "worst": max(1 / layer["balancedness"] for layer in found["layers"].values())}


def generate(bundle, prompts, *options):
    bundle.text("generate", "--batch-file", prompts, "-n", NEW_TOKENS, "--ignore-eos", "--transport", "local",
                "--trust", "--json", *options)


def measure(bench):
    ranks = NODES * PER_NODE
    limits = ("--step-tokens", 128, "--max-sequences", 16, "--max-context", 64, "--without", "overlap-communication")

    def point(number, share):
        checkpoint = bench.checkpoint("qwen3moe", skewed=share)
        plain = bench.bundle(checkpoint, NODES, PER_NODE, *limits)
        spare = bench.bundle(checkpoint, NODES, PER_NODE, *limits, "--layout",
                             f"ep={ranks},dp={ranks},redundant={ranks}")
        with tempfile.TemporaryDirectory() as folder:
            stats = os.path.join(folder, "stats.json")
            with bench.prompts(plain, PROMPTS, TOKENS, 2 * number) as prompts:
                generate(plain, prompts, "--expert-stats", stats)
            found = {}
            with bench.prompts(plain, PROMPTS, TOKENS, 2 * number + 1) as prompts:
                found["linear"] = counted(plain, prompts, folder)
                for side, bundle in (("placed", plain), ("copies", spare)):
                    placement = os.path.join(folder, f"{side}.json")
                    output([bench.tool, "place", stats, "--bundle", bundle.folder, "--objective", "nodes", "-o",
                            placement])
                    found[side] = counted(bundle, prompts, folder, "--placement", placement)
        return found

    bench.rounds("placement", SHARES, point)


def verdict(points, side):
    """Of the aim for a placement, in words."""
    if side == "linear":
        return ""
    of_linear = median(p[side]["bytes"] / p["linear"]["bytes"] for p in points)
    if side == "placed":
        return "met" if of_linear <= AIM_OF_BYTES else "missed"
    loads = median(p["copies"]["load"] for p in points) <= AIM_OF_LOAD
    fewer = median(p["copies"]["bytes"] / p["placed"]["bytes"] for p in points) <= 1
    return f"load {'met' if loads else 'missed'}, bytes {'met' if fewer else 'missed'}"


def table(bench, points):
    text = TEXT.format(new=NEW_TOKENS, prompts=PROMPTS, tokens=TOKENS, nodes=NODES, per_node=PER_NODE,
                       ranks=NODES * PER_NODE, bytes=AIM_OF_BYTES, load=AIM_OF_LOAD)
    for share in dict.fromkeys(point["key"] for point in points):
        of_share = [point for point in points if point["key"] == share]
        for side, name in SIDES.items():
            of_side = [point[side] for point in of_share]
            text += f"| {share} | {name} | {both([one['bytes'] / 1e6 for one in of_side], 1)} |"
            text += f" {median(p[side]['bytes'] / p['linear']['bytes'] for p in of_share):.3f} |"
            text += "".join(f" {median(one[key] for one in of_side):.2f} |" for key in ("nodes", "load", "worst"))
            text += f" {verdict(of_share, side)} |\n"
    return text
