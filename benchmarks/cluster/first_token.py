"""From the start of launch.sh on all hosts to the first token."""
import time
from statistics import median

from hosts import Hosts
from launched import Launched

from .bench import MBIT, both

TITLE = "First token"
OVER_HOSTS = True
NODES, PER_NODE = 4, 2
AIM = 2
TEXT = """\
`launch.sh --node I generate --prompt-ids 1,2,3 -n 8`, started at once on {nodes} hosts of {per_node} ranks, links of
{mbit} Mbit/s: seconds until the first byte of text can be read from rank 0's. `benchmarks/checkpoints.py qwen3moe` in
bf16, its files in the page cache; the hashes of all weights are checked at the start, with `--trust` they are not. The
aim is {aim} s.

| start | seconds | aim {aim} |
|---|---|---|
"""
STARTS = {"hashes": (), "trust": ("--trust",)}


def measure(bench):
    limits = ("--step-tokens", 64, "--max-sequences", 2, "--max-context", 128)

    def point(_, name):
        bundle = bench.bundle(bench.checkpoint("qwen3moe"), NODES, PER_NODE, *limits)
        with Hosts(NODES, PER_NODE, mbit=MBIT) as hosts:
            run = Launched(bundle, hosts, "ucx")
            begin = time.monotonic()
            process = run.start("generate", "--prompt-ids", "1,2,3", "-n", "8", "--ignore-eos", *STARTS[name])
            process.stdout.read(1)
            seconds = time.monotonic() - begin
            run.finish(process)
        return {"seconds": seconds}

    bench.rounds("first-token", STARTS, point)


def table(bench, points):
    text = TEXT.format(nodes=NODES, per_node=PER_NODE, mbit=MBIT, aim=AIM)
    for name in dict.fromkeys(point["key"] for point in points):
        seconds = [point["seconds"] for point in points if point["key"] == name]
        label = "hashes checked" if name == "hashes" else "`--trust`"
        text += f"| {label} | {both(seconds)} | {'met' if median(seconds) <= AIM else 'missed'} |\n"
    return text
