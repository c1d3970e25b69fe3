"""A swap of placements in the middle of a run: the step at which it happens against the others."""
import json
import os
import tempfile
from statistics import median

from hosts import Hosts
from launched import Launched

from . import traces
from .bench import MBIT

TITLE = "A swap of placements"
OVER_HOSTS = True
NODES, PER_NODE = 4, 2
AIM = 2
SWAPS = (16, 32, 48)
TEXT = """\
`generate --batch-file FILE -n {new} --placement b.json@{swaps[0]} --placement a.json@{swaps[1]} --placement
b.json@{swaps[2]} --trace FILE` of {nodes} hosts of {per_node} ranks, links of {mbit} Mbit/s, a sequence on each rank,
of `benchmarks/checkpoints.py qwen3moe` in bf16. b.json gives each rank the experts that the last one of a.json has, the
next one those of the last but one, and so on, so that every rank computes with other experts behind a swap. A step
takes from the end of the one before to its own end, on rank 0, records and results included. The aim is {aim} median
steps.

| step of the swap | median of the others | the swap's | ratio | the worst round's | the slowest other step's | aim {aim} |
|---|---|---|---|---|---|---|
"""


def reversed_placement(bundle, path):
    """The bundle's own placement, the ranks' lists in reversed order."""
    with open(os.path.join(bundle.folder, "placement.json")) as file:
        placement = json.load(file)
    for lists in placement["layers"].values():
        lists["both"].reverse()
    with open(path, "w") as file:
        json.dump(placement, file)


def measure(bench):
    limits = ("--step-tokens", 64, "--max-sequences", 2, "--max-context", 128)
    ranks = NODES * PER_NODE

    def point(number, _):
        bundle = bench.bundle(bench.checkpoint("qwen3moe"), NODES, PER_NODE, *limits)
        with Hosts(NODES, PER_NODE, mbit=MBIT) as hosts, tempfile.TemporaryDirectory() as folder:
            other, trace = (os.path.join(folder, name) for name in ("b.json", "trace.json"))
            reversed_placement(bundle, other)
            own = os.path.join(bundle.folder, "placement.json")
            swaps = [f"{other if i % 2 == 0 else own}@{step}" for i, step in enumerate(SWAPS)]
            with bench.prompts(bundle, ranks, 16, number) as prompts:
                Launched(bundle, hosts, "ucx").output(
                    "generate", "--batch-file", prompts, "-n", str(SWAPS[-1] + 16), "--ignore-eos", "--trust", "--json",
                    *(word for swap in swaps for word in ("--placement", swap)), "--trace", trace)
            ends = traces.step_ends(trace)
        return {"seconds": {step: end - ends[step - 1] for step, end in ends.items() if step > 1}}

    bench.rounds("swap", ("reversed",), point)


def table(bench, points):
    text = TEXT.format(new=SWAPS[-1] + 16, swaps=SWAPS, nodes=NODES, per_node=PER_NODE, mbit=MBIT, aim=AIM)
    runs = []
    for point in points:
        seconds = {int(step): value for step, value in point["seconds"].items()}
        runs.append((seconds, sorted(value for step, value in seconds.items() if step not in SWAPS)))
    for step in SWAPS:
        ratios = [seconds[step] / median(others) for seconds, others in runs]
        text += f"| {step} | {1e3 * median(median(others) for _, others in runs):.1f} ms |"
        text += f" {1e3 * median(seconds[step] for seconds, _ in runs):.1f} ms | {median(ratios):.2f} |"
        text += f" {max(ratios):.2f} | {median(others[-1] / median(others) for _, others in runs):.2f} |"
        text += f" {'met' if median(ratios) <= AIM else 'missed'} |\n"
    return text
