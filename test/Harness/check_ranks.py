"""check_ranks.py CHECKPOINT RANKS[xNODES] [k2c compile options]: several ranks have the bits of one.

CHECKPOINT is a folder, or wide-KIND, which benchmarks/checkpoints.py writes. RANKS ranks of one core on NODES nodes (as
many as ranks, unless it is said), as threads of one process. One prompt leaves all other ranks idle in every step; 11
prompts of many lengths share the ranks. Compared with a bundle of one rank, byte by byte: every logit, the hidden state
after every layer, the experts of every token and their weights, perplexity, and generated tokens; read whole, in
chunks, and with two workers a rank. Unless the options say something else of them, steps of more than half of their
limit go in two halves, and smaller ones whole.
"""
import os
import sys

from bundles import Failure, compiled, json_file, objects
from check_invariance import draw
from wide import checkpoint as found

TOPOLOGY = """k2topo: 1
name: test-{ranks}x{nodes}
description: {ranks} ranks on {nodes} nodes, for tests
device:
  kind: cpu
  cores: 1
  memory: {{value: 8 GiB, source: "a test"}}
  memory_read: {{value: 10 GB/s, source: "a test"}}
  f32: {{value: 100 GFLOP/s, source: "a test"}}
  bf16: {{value: 100 GFLOP/s, source: "a test"}}
  l1: {{value: 32 KiB, source: "a test"}}
  l2: {{value: 512 KiB, source: "a test"}}
  l3: {{value: 8 MiB, source: "a test"}}
tiers:
"""
TIER = """  - name: {name}
    count: {count}
    link: {link}
    bandwidth: 1 GB/s
    latency: 10 us
    source: "a test"
"""
LIMITS = ("--step-tokens", "48", "--max-sequences", "12", "--max-context", "64")
LOCAL = ("--transport", "local")


def topology(ranks, nodes):
    """The path of a topology file, always the same one, as bundles are known by it."""
    folder = os.path.join(os.path.dirname(objects()), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"test-{ranks}x{nodes}.yaml")
    tiers = [("node", ranks // nodes, "shared-memory"), ("network", nodes, "ethernet")]
    with open(path + ".new", "w") as file:
        file.write(TOPOLOGY.format(ranks=ranks, nodes=nodes))
        file.writelines(TIER.format(name=n, count=c, link=l) for n, c, l in tiers if c > 1)
    os.rename(path + ".new", path)
    return path


def overlapping(ranks, experts):
    """A layout over all ranks whose steps may go in halves."""
    return f"ep={ranks},dp={ranks},redundant={-experts % ranks},overlap=1"


def of_one_rank(options):
    """Without how ranks divide the work."""
    left = list(options)
    while "--layout" in left:
        at = left.index("--layout")
        del left[at : at + 2]
    return left


def expect(what, one, several):
    if one != several:
        raise Failure(f"{what}: several ranks differ from one")


def culprit(rank):
    """How a deadline names a stopped rank: it does not answer, or others wait for one that waits for it."""
    return rf"rank {rank} does not answer|answers: its workers wait at site \d+ \([^)]*\) for rank {rank}\b"


def compare(one, several, prompts):
    """Commands of a bundle of one rank and of one of several."""
    expect("logits of a batch", one.batch_logits(prompts, "--all"), several.batch_logits(prompts, "--all", *LOCAL))
    expect("last logits of a batch", one.batch_logits(prompts), several.batch_logits(prompts, *LOCAL, "--chunk", 3))
    longest = max(prompts, key=len)
    reference = one.logits(longest, "--all")
    for options in ((), ("--chunk", 1), ("--chunk", 7), ("--threads", 2)):
        expect(f"logits of a prompt {options}", reference, several.logits(longest, "--all", *LOCAL, *options))
    for command in ("hidden", "routes"):
        ids = ",".join(map(str, longest))
        expect(command, one.json(command, "--prompt-ids", ids), several.json(command, "--prompt-ids", ids, *LOCAL))
    with json_file([prompt for prompt in prompts if len(prompt) > 1]) as texts:
        expect("perplexity", one.json("perplexity", texts), several.json("perplexity", texts, *LOCAL))
    expect("generated tokens", one.generate(longest[:9], 6)["ids"], several.generate(longest[:9], 6, *LOCAL)["ids"])


def main(name, shape, *options):
    checkpoint = found(name)
    ranks, nodes = (int(part) for part in (shape.split("x") + shape.split("x"))[:2])
    one = compiled(checkpoint, *LIMITS, *of_one_rank(options))
    layout = ()
    if not {"--layout", "--placement", "overlap-communication"} & set(options):
        layout = ("--layout", overlapping(ranks, one.manifest["model"]["experts"]))
    several = compiled(checkpoint, "--topology", topology(ranks, nodes), *LIMITS, *layout, *options)
    if several.manifest["topology"]["ranks"] != ranks:
        raise Failure(f"the bundle has {several.manifest['topology']['ranks']} ranks, {ranks} were asked for")
    if layout and several.manifest.get("halves", {}).get("rows") != 24:
        raise Failure(f"half of a step of 48 rows has 24, the manifest says {several.manifest.get('halves')}")
    vocab = one.manifest["model"]["vocab"]
    compare(one, several, [draw(1 + i * 13 % 41, vocab, i) for i in range(11)])
    print(f"{name}: {ranks} ranks have the bits of one")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_ranks.py: {wrong}")
