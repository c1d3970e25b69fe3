#!/usr/bin/env python3
"""Plans the published runs of docs/published.json and writes docs/Published.md.

usage: scripts/published.py [--check] [--planner FILE]      --check compares the page and writes nothing

A run names a built-in topology and the counts of its tiers that differ, a layout, a workload, and the figure of the
plan that is published, times a number. `without`: the figure is what this entry of the layout gains. `leave_out`: a
column of the table that leaves out one of the topology's `kernels` at a time.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "Published.md")
HEAD = """# Plans beside published runs

What `k2c plan` says of deployments whose figures are published; `scripts/published.py` writes this page from
`docs/published.json`. No constant of the planner was fitted to a run: what kernels reach comes from published
measurements of kernels (`kernels` of the topology files, with their sources), the imbalance of routing from
TensorRT-LLM's technical blog 4, the rest from the arithmetic of [Planner](Planner.md). A machine has one set for all
models and phases.

| deployment | layout | figure | published | planned | planned / published |
|---|---|---|---|---|---|
"""
MIDDLE = """
What the rows outside of 0.8 to 1.25 lack: the online figure is a mean over a day whose load varies, with prompts of all
lengths, neither of which is published; of Llama 405B, gradients are summed with every micro-batch under os+g, while its
system accumulates them, and its pipeline schedule is its own. Gains of overlap are too large, as the memory traffic of
transfers is not counted; where halves would be slower, a plan does not overlap and gains nothing.

Each of the `kernels` of a topology can be left out alone. Planned / published then:

"""


def topology(run, left_out, folder):
    with open(os.path.join(ROOT, "models", "topologies", run["topology"]["file"] + ".yaml")) as file:
        text = file.read()
    for tier, count in run["topology"]["counts"].items():
        text, found = re.subn(rf"(- name: {tier}\n +count: )\d+", rf"\g<1>{count}", text)
        if found != 1:
            sys.exit(f"published.py: {run['topology']['file']} has {found} tiers called {tier}, not one")
    if left_out:
        text = re.sub(rf"(?m)^    {left_out}: .*\n", "", text)
    path = os.path.join(folder, "topology.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


def figures(value):
    """Every figure of a plan, by its key."""
    if isinstance(value, list):
        return {key: x for each in value for key, x in figures(each).items()}
    if not isinstance(value, dict):
        return {}
    found = {key: x for each in value.values() for key, x in figures(each).items()}
    listed = value.get("figures", {})
    if isinstance(listed, list):
        listed = {each["key"]: each for each in listed}
    return {**found, **{key: x["value"] if isinstance(x, dict) else x for key, x in listed.items()}}


def planned(run, planner, layout, left_out=None):
    """The figure of the run's plan; None where it is refused."""
    workload = {"k2workload": 1, "name": "published", **run["workload"]}
    if workload.get("expert_load") == "even":
        workload["expert_load"] = [1] * 256
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "workload.yaml")
        with open(path, "w") as file:
            json.dump(workload, file)
        command = [planner, run["model"], "--topology", topology(run, left_out, folder), "--layout", layout,
                   "--workload", path, "--json", *run.get("flags", [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None
    return figures(json.loads(done.stdout))[run["key"]] * run["times"]


def amount(x):
    return "refused" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def row(run, planner):
    layout, published = run["layout"], run["published"]
    ours = planned(run, planner, layout)
    if "without" in run:
        plain = planned(run, planner, ",".join(entry for entry in layout.split(",") if entry != run["without"]))
        gain = lambda x: f"{100 * x:+.3g} %"
        cells = [" to ".join(map(gain, published)), gain(ours / plain - 1) if ours and plain else "refused", ""]
    else:
        cells = [amount(published), amount(ours), f"{ours / published:.2f}" if ours else ""]
    return "| " + " | ".join([f"{run['deployment']} ({run['source']})", f"`{layout}`", run["figure"], *cells]) + " |\n"


def left_out_table(runs, planner):
    columns = [run for run in runs if run.get("leave_out")]
    table = "| left out | " + " | ".join(run["name"] for run in columns) + " |\n" + "|---" * (len(columns) + 1) + "|\n"
    for key in [None, "memory", "bf16", "fp8", "attention", "attention_backward", "launch", "fill", "transfer_sms"]:
        ratios = [(planned(run, planner, run["layout"], key), run["published"]) for run in columns]
        cells = [f"{ours / published:.2f}" if ours else "refused" for ours, published in ratios]
        table += "| " + " | ".join([key or "nothing", *cells]) + " |\n"
    return table


def main():
    parser = argparse.ArgumentParser(prog="scripts/published.py", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the page, write nothing")
    parser.add_argument("--planner", default=os.path.join(ROOT, "build", "bin", "k2c-plan"), help="default: build/bin")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "docs", "published.json")) as file:
        runs = json.load(file)
    page = HEAD + "".join(row(run, args.planner) for run in runs) + MIDDLE + left_out_table(runs, args.planner)
    if not args.check:
        with open(PAGE, "w") as file:
            file.write(page)
        return
    with open(PAGE) as file:
        if file.read() != page:
            sys.exit("docs/Published.md is not what the plans are; run scripts/published.py")


main()
