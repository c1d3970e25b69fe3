#!/usr/bin/env python3
"""Plans the published runs of docs/published.json; writes docs/Published.md and models/published-bands.json.

usage: scripts/published.py [--check] [--planner FILE]      --check compares both and writes nothing

A run names a built-in topology and the counts of its tiers that differ, a model and the keys of its config.json that
differ, a layout, a workload, and the figure of the plan that is published, times a number. `without`: the figure is
what this entry of the layout gains. `leave_out`: a column of the table that leaves out one of the topology's `kernels`
at a time. `class`: the band that a plan prints counts the run; `seconds`: its figure is a time, so that the ratio of
rates is the inverse.
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
BANDS = os.path.join(ROOT, "models", "published-bands.json")
KERNELS = ["memory", "bf16", "fp8", "attention", "attention_backward", "launch", "fill", "attention_fill", "tile_rows",
           "transfer_sms", "transfer_rate", "send_receive"]
EXPERTS = {"deepseek-v3": 256, "qwen3-235b-a22b": 128}  # where loads are even
HEAD = """# Plans beside published runs

What `k2c plan` says of deployments whose figures are published; `scripts/published.py` writes this page from
`docs/published.json`. No constant of the planner was fitted to a run: what kernels reach comes from published
measurements of kernels (`kernels` of the topology files, with their sources), the imbalance of routing from
TensorRT-LLM's technical blog 4, the rest from the arithmetic of [Planner](Planner.md), which also says what had been
seen when a term was chosen. A machine has one set for all models and phases. A figure of one pool of a deployment is of
a plan of that pool alone (`phase`).

| deployment | layout | figure | published | planned | planned / published |
|---|---|---|---|---|---|
"""
MIDDLE = """
Where the rest goes: online figures are means of a day whose load varies, with prompts of all lengths, neither of
which is published. Gains of overlap in prefill are 3 to 5 points above the published range, that of 32 sequences is
14 points below: kernels that send and receive were measured with 128 tokens only. Trained with Megatron-LM's own
all-to-all (Qwen3 on H100), a token crosses the network once for each of its experts and in bf16, where plans send
it once to each node. On GB200 software was young: V3 in MXFP8 went from 4,018 to 4,969 tokens/s a GPU from
Megatron-Bridge 25.11 to 26.06. Llama 405B fits with sharded gradients only, and plans sum these with every
micro-batch, while its system says that it accumulates several before.

A plan prints the range of its class, where three runs are known at least:

"""
LAST = """
Each of the `kernels` of a topology can be left out alone. Planned / published then:

"""
SOURCES = """
All of these constants, of the built-in topologies:

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


def model(run, folder):
    """Its name, or a folder with its configuration changed."""
    if "config" not in run:
        return run["model"]
    with open(os.path.join(ROOT, "models", "configs", run["model"], "config.json")) as file:
        config = {**json.load(file), **run["config"]}
    os.mkdir(os.path.join(folder, run["model"]))
    with open(os.path.join(folder, run["model"], "config.json"), "w") as file:
        json.dump(config, file)
    return os.path.join(folder, run["model"])


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
        workload["expert_load"] = [1] * EXPERTS[run["model"]]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "workload.yaml")
        with open(path, "w") as file:
            json.dump(workload, file)
        command = [planner, model(run, folder), "--topology", topology(run, left_out, folder), "--layout", layout,
                   "--workload", path, "--json", *run.get("flags", [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None
    return figures(json.loads(done.stdout))[run["key"]] * run["times"]


def amount(x):
    return "refused" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def row(run, planner, bands):
    layout, published = run["layout"], run["published"]
    ours = planned(run, planner, layout)
    if "without" in run:
        plain = planned(run, planner, ",".join(entry for entry in layout.split(",") if entry != run["without"]))
        gain = lambda x: f"{100 * x:+.3g} %"
        cells = [" to ".join(map(gain, published)), gain(ours / plain - 1) if ours and plain else "refused", ""]
    else:
        cells = [amount(published), amount(ours), f"{ours / published:.2f}" if ours else ""]
    if ours and "class" in run:
        ratio = published / ours if run.get("seconds") else ours / published
        bands.setdefault(run["class"], {})[run["name"]] = round(ratio, 3)
    return "| " + " | ".join([f"{run['deployment']} ({run['source']})", f"`{layout}`", run["figure"], *cells]) + " |\n"


def table_of_bands(bands):
    table = "| class | planned / published, of rates |\n|---|---|\n"
    for name, runs in bands.items():
        table += f"| {name} | " + ", ".join(f"{run}: {ratio:.2f}" for run, ratio in runs.items()) + " |\n"
    return table


def left_out_table(runs, planner):
    columns = [run for run in runs if "leave_out" in run]
    table = "| left out | " + " | ".join(run["leave_out"] for run in columns) + " |\n"
    table += "|---" * (len(columns) + 1) + "|\n"
    for key in [None, *KERNELS]:
        ratios = [(planned(run, planner, run["layout"], key), run["published"]) for run in columns]
        cells = [f"{ours / published:.2f}" if ours else "refused" for ours, published in ratios]
        table += "| " + " | ".join([key or "nothing", *cells]) + " |\n"
    return table


def table_of_kernels():
    """The constants of all built-in topologies, with their sources and machines."""
    rows, folder = {}, os.path.join(ROOT, "models", "topologies")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            text = file.read()
        device = re.search(r"(?m)^  model: (.*)$", text)
        for key, value, source in re.findall(r'(?m)^    (\w+): {value: ([^,]+), source: "([^"]*)"}$', text):
            if key in KERNELS and device:
                rows.setdefault((KERNELS.index(key), value, source), set()).add(device[1])
    table = "| kernels | value | source | machines |\n|---|---|---|---|\n"
    for (key, value, source), machines in sorted(rows.items()):
        table += f"| {KERNELS[key]} | {value} | {source} | {', '.join(sorted(machines))} |\n"
    return table


def main():
    parser = argparse.ArgumentParser(prog="scripts/published.py", description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the page, write nothing")
    parser.add_argument("--planner", default=os.path.join(ROOT, "build", "bin", "k2c-plan"), help="default: build/bin")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "docs", "published.json")) as file:
        runs = json.load(file)
    bands = {}
    rows = "".join(row(run, args.planner, bands) for run in runs)
    page = HEAD + rows + MIDDLE + table_of_bands(bands)
    page += LAST + left_out_table(runs, args.planner) + SOURCES + table_of_kernels()
    written = {PAGE: page, BANDS: json.dumps(bands, indent=1) + "\n"}
    for path, text in written.items():
        if not args.check:
            with open(path, "w") as file:
                file.write(text)
            continue
        with open(path) as file:
            if file.read() != text:
                sys.exit(f"{os.path.relpath(path, ROOT)} is not what the plans are; run scripts/published.py")


main()
