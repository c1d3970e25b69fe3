#!/usr/bin/env python3
"""Plans the published runs of docs/published.json; writes docs/Published.md and models/published-bands.json.

usage: scripts/published.py [--check] [--planner FILE]      --check compares both and writes nothing

A run names a built-in topology and the counts of its tiers that differ, a model and the keys of its config.json that
differ, a layout, a workload, and the figure of the plan that is published, times a number. `without`: the figure is
what this entry of the layout gains. `class`: the band that a plan prints counts the run; `seconds`: its figure is a
time, so that the ratio of rates is the inverse. Every run is planned again with one of the topology's `kernels` left
out at a time. Constants that stand in code are listed here, and the code has to have them.
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
# Constants that stand in code: what the code says, its file, value, meaning, source.
CODE = [
    ("measuredSlots = 8, meanRows = 1024, inOrder = 491.65, placed = 53.98;", "lib/Planner/Cluster/LargestLoad.cpp",
     "491.65 and 53.98 rows, of 1,024 in the mean", "deviation of the rows of a rank with 8 slots of experts, in the "
     "order of the checkpoint and placed by load", "TensorRT-LLM, technical blog 4"),
    ("constexpr double copies = 4;", "lib/Planner/Cluster/ServeLinks.cpp", "4",
     "reads and writes of memory of a row for each tier that it crosses", "DeepEP README: RDMA and NVLink buffers"),
    ("dispatchBytes = fp8 ? 1 + 4.0 / 128 : activationBytes;", "lib/Planner/Cluster/DeviceRates.cpp",
     "1 + 4 / 128 B", "a value that is dispatched in FP8, one f32 scale for 128", "DeepSeek-V3 report, section 3.3.2"),
    ("constexpr double fp8 = 1 + f32 / 128;", "lib/Planner/Cluster/KeptValues.cpp", "1 + 4 / 128 B",
     "a value that is kept in FP8 for the backward", "DeepSeek-V3 report, section 3.3.2"),
    ("constexpr double e5m6 = 1.5 + f32 / 128;", "lib/Planner/Cluster/KeptValues.cpp", "1.5 + 4 / 128 B",
     "the input of the linear after attention, in E5M6", "DeepSeek-V3 report, section 3.3.3"),
    ("const double backward = 2.5 * rates.attention / rates.attentionBackward;", "lib/Planner/Cluster/TrainStep.cpp",
     "2.5", "inner products of attention's backward to those of its forward", "arithmetic: five products to two, as "
     "scores are computed again"),
    ("maxBusy = 0.95;", "lib/Planner/Cluster/ServingModel.h", "0.95",
     "share of the time at which a queue is planned at most", "chosen: M/D/1 waits 9.5 times its service there"),
    ("int64_t alignment = 128;", "include/k2c/Planner/Workload.h", "128 rows",
     "an expert's rows are padded to a multiple; `alignment` of a workload", "DeepGEMM README: contiguous layout"),
    ("double reserve = 0.08;", "include/k2c/Planner/Workload.h", "0.08",
     "share of memory of libraries and fragmentation, serving; `reserve` of a workload", "chosen"),
    ("double fragmentation = 0.05;", "include/k2c/Planner/Workload.h", "0.05",
     "share of activations and buffers, training; `fragmentation` of a workload", "paper 002: 5 to 30 %"),
    ("double buffers = 1e9;", "include/k2c/Planner/Workload.h", "1 GB",
     "of a rank beside states and activations, training; `buffers` of a workload", "paper 002: 0.8 to 2 GB"),
]
EXPERTS = {"deepseek-v3": 256, "qwen3-235b-a22b": 128}  # where loads are even
HEAD = """# Plans beside published runs

What `k2c plan` says of deployments whose figures are published; `scripts/published.py` writes this page from
`docs/published.json`. No constant of the planner was fitted to a run: what kernels reach comes from published
measurements of kernels (`kernels` of the topology files, with their sources), the imbalance of routing from
TensorRT-LLM's technical blog 4, the rest from the arithmetic of [Planner](Planner.md), which also says what had been
seen when a term was chosen. A machine has one set for all models and phases. A figure of one pool of a deployment is of
a plan of that pool alone (`phase`).

| | deployment | layout | figure | published | planned | planned / published |
|---|---|---|---|---|---|---|
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
Each of the `kernels` of a topology can be left out alone. Planned / published then, or the gain, of every run above:

"""
SOURCES = """
What kernels reach, the `kernels` of the built-in topologies:

"""
IN_CODE = """
Constants that stand in code, the same for all machines, models and phases:

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


def compared(run, planner, left_out=None):
    """The figure of the run's plan and how it compares: a ratio, or the gain itself."""
    ours = planned(run, planner, run["layout"], left_out)
    if "without" not in run:
        return ours, f"{ours / run['published']:.2f}" if ours else "refused"
    layout = ",".join(entry for entry in run["layout"].split(",") if entry != run["without"])
    plain = planned(run, planner, layout, left_out)
    return ours, gain(ours / plain - 1) if ours and plain else "refused"


def gain(x):
    return f"{100 * x:+.3g} %"


def row(number, run, planner, bands):
    published = run["published"]
    ours, text = compared(run, planner)
    if "without" in run:
        cells = [" to ".join(map(gain, published)), text, ""]
    else:
        cells = [amount(published), amount(ours), text if ours else ""]
    if ours and "class" in run:
        ratio = published / ours if run.get("seconds") else ours / published
        bands.setdefault(run["class"], {})[run["name"]] = round(ratio, 3)
    deployment = f"{run['deployment']} ({run['source']})"
    return "| " + " | ".join([str(number), deployment, f"`{run['layout']}`", run["figure"], *cells]) + " |\n"


def table_of_bands(bands):
    table = "| class | planned / published, of rates |\n|---|---|\n"
    for name, runs in bands.items():
        table += f"| {name} | " + ", ".join(f"{run}: {ratio:.2f}" for run, ratio in runs.items()) + " |\n"
    return table


def left_out_table(runs, planner):
    table = "| run | nothing | " + " | ".join(KERNELS) + " |\n" + "|---" * (len(KERNELS) + 2) + "|\n"
    for number, run in enumerate(runs, 1):
        cells = [compared(run, planner, key)[1] for key in [None, *KERNELS]]
        table += "| " + " | ".join([str(number), *cells]) + " |\n"
    return table


def table_of_code():
    """The constants of CODE, each of which its file says once."""
    table = "| value | meaning | file | source |\n|---|---|---|---|\n"
    for text, path, value, meaning, source in CODE:
        with open(os.path.join(ROOT, path)) as file:
            found = file.read().count(text)
        if found != 1:
            sys.exit(f"published.py: {path} says '{text}' {found} times, not once; change CODE with it")
        table += f"| {value} | {meaning} | {path} | {source} |\n"
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
    # Each part is compared before the next one is planned, so that a difference is said soon.
    parts = [lambda: HEAD + "".join(row(number, run, args.planner, bands) for number, run in enumerate(runs, 1)),
             lambda: MIDDLE + table_of_bands(bands), lambda: SOURCES + table_of_kernels(),
             lambda: IN_CODE + table_of_code(), lambda: LAST + left_out_table(runs, args.planner)]
    page = ""
    for part in parts:
        page += part()
        if args.check and not text_of(PAGE).startswith(page):
            fail_check(PAGE)
        if args.check and bands_text(bands) != text_of(BANDS):
            fail_check(BANDS)
    if args.check and text_of(PAGE) != page:
        fail_check(PAGE)
    for path, text in [] if args.check else [(PAGE, page), (BANDS, bands_text(bands))]:
        with open(path, "w") as file:
            file.write(text)


def bands_text(bands):
    return json.dumps(bands, indent=1) + "\n"


def text_of(path):
    with open(path) as file:
        return file.read()


def fail_check(path):
    sys.exit(f"{os.path.relpath(path, ROOT)} is not what the plans are; run scripts/published.py")


main()
