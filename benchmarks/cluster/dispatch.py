"""Dispatch and combine: what rows take between nodes against what links carry, and large messages against a socket."""
import json
import os
import re
import tempfile
from statistics import median

import checkpoints
from hosts import Hosts
from launched import Launched

from . import traces
from .bench import MBIT, both, probe

TITLE = "Dispatch and combine"
OVER_HOSTS = True
NODES, PER_NODE = 4, 2
AIM, AIM_OF_LINK = 1.2, 0.95
BURST_KIB = 128  # little beside what an exchange sends, so that links have the rate that the probe finds
TEXT = """\
`bench --prompts 8 --prefill {prefill} --decode 0 --trace FILE` of {nodes} hosts of {per_node} ranks, links of {mbit}
Mbit/s, a prompt on each rank, of `benchmarks/checkpoints.py qwen3moe` in bf16 ({experts} experts, {top} a token),
compiled with `--route-limit M`; with M = {nodes}, without a limit. Times are of a step, the dispatch and the combine
between nodes of all layers together, steps behind the first. floor: the bytes that the busiest node sends or receives
in each, headers included, over the bandwidth of a socket before and behind the run. exchange: from the start of an
exchange to its end, the mean of ranks, so that waiting for slower ranks is in it. behind the last: from the start of
the last rank to the end of the last one; rows of the others may have crossed before, and behind a pause a link carries
{burst} KiB at once, so it can be below the floor. The aim is an exchange of at most {aim} floors.

| M | nodes of a token | busiest node, MB | floor | exchange | of the floor | behind the last | of the floor | aim {aim} |
|---|---|---|---|---|---|---|---|---|
"""
LARGE = """
Large messages, by `launch.sh links` between the same hosts: the share of the socket's bandwidth that one message from
a rank to another one reaches, and what both ranks of a host reach together while all send. The aim is {aim}.

| link, Mbit/s | the probe | one message, Mbit/s | of the probe | all ranks, Mbit/s a host | of the probe | aim {aim} |
|---|---|---|---|---|---|---|
"""


def links(run):
    """Mbit/s of one message between nodes, and of a node while all ranks send."""
    with tempfile.NamedTemporaryFile(suffix=".yaml") as measured:
        run.output("links", "-o", measured.name)
        with open(measured.name) as file:
            text = file.read()
    network = r'name: "network".*?bandwidth: {value: ([\d.]+) (\w)B/s.*?efficiency: {value: ([\d.]+),'
    rate, unit, share = re.search(network, text, re.S).groups()
    mbit = float(rate) * {"k": 1e-3, "M": 1, "G": 1e3}[unit] * 8
    return mbit, mbit * float(share) * PER_NODE


def measure(bench):
    prefill = bench.args.prefill
    limits = ("--step-tokens", prefill, "--max-sequences", 2, "--max-context", 2 * prefill)

    def point(_, limit):
        bound = ("--route-limit", limit) if limit < NODES else ()
        bundle = bench.bundle(bench.checkpoint("qwen3moe"), NODES, PER_NODE, *limits, "--without",
                              "overlap-communication", *bound)
        with Hosts(NODES, PER_NODE, mbit=MBIT, burst_kib=BURST_KIB) as hosts, tempfile.TemporaryDirectory() as folder:
            run = Launched(bundle, hosts, "ucx")
            trace, counters = (os.path.join(folder, name) for name in ("trace.json", "counters.json"))
            before, (one, together) = probe(hosts), links(run)
            run.output("bench", "--prompts", str(NODES * PER_NODE), "--prefill", str(prefill), "--decode", "0",
                       "--context", "1", "--repeat", "3", "--trust", "--json", "--trace", trace, "--counters", counters)
            after = probe(hosts)
            with open(counters) as file:
                nodes = json.load(file)["nodes_per_token"]["mean"]
            return {"probe_mbit": (before + after) / 2, "one_mbit": one, "together_mbit": together, "nodes": nodes,
                    "steps": traces.exchanges(trace, "rail", PER_NODE)[1:]}

    bench.rounds("dispatch", (4, 2, 1), point)


def summary(point):
    """Medians of the steps of a run."""
    found = {name: median(step[name] for step in point["steps"]) for name in point["steps"][0]}
    return {**found, "floor_s": found["busiest_bytes"] * 8e-6 / point["probe_mbit"], "nodes": point["nodes"]}


def table(bench, points):
    config = checkpoints.config_of("qwen3moe", checkpoints.SMALL if bench.args.small else {})
    text = TEXT.format(prefill=bench.args.prefill, nodes=NODES, per_node=PER_NODE, mbit=MBIT, aim=AIM,
                       burst=BURST_KIB, experts=config["num_experts"], top=config["num_experts_per_tok"])
    for limit in dict.fromkeys(point["key"] for point in points):
        runs = [summary(point) for point in points if point["key"] == limit]
        ratios = {name: median(run[name] / run["floor_s"] for run in runs) for name in ("mean_s", "behind_s")}
        text += f"| {limit} | {median(run['nodes'] for run in runs):.2f} |"
        text += f" {median(run['busiest_bytes'] for run in runs) / 1e6:.1f} |"
        text += f" {median(run['floor_s'] for run in runs):.3f} s |"
        text += "".join(f" {both([run[name] for run in runs], 3, ' s')} | {ratios[name]:.2f} |" for name in ratios)
        text += f" {'met' if ratios['mean_s'] <= AIM else 'missed'} |\n"
    one, together = (median(p[name] / p["probe_mbit"] for p in points) for name in ("one_mbit", "together_mbit"))
    text += LARGE.format(aim=AIM_OF_LINK) + f"| {MBIT} | {median(p['probe_mbit'] for p in points):.0f} |"
    text += f" {median(p['one_mbit'] for p in points):.0f} | {one:.3f} |"
    text += f" {median(p['together_mbit'] for p in points):.0f} | {together:.3f} |"
    return text + f" {'met' if one >= AIM_OF_LINK else 'missed'} |\n"
