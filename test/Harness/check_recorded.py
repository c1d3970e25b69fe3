"""check_recorded.py CHECKPOINT DRIVER: what a program of a GPU asks of its driver, as another library sees it.

DRIVER (recording_driver.c) stands between the program and the emulated driver of its bundle. A step is one launch of a
graph, which has branches, nothing is allocated behind the first, and the device's memory is what `info` says, but for
the context, which is an estimate.
"""
import json
import os
import sys
import tempfile

from bundles import Failure, compiled
from golden import Golden, Report

CONTEXT_BYTES = 512 << 20  # K2RT_GPU_CONTEXT_BYTES
SLACK = 2048  # of the arrays' places in the step, which the reserve bounds
COUNT = 6


def recorded(bundle, driver, ids, *arguments):
    """The tokens of a run, and what the driver has counted."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "calls.json")
        os.environ["K2C_RECORDED_FILE"] = file
        os.environ["K2C_RECORDED_DRIVER"] = os.path.join(bundle.folder, "lib", "libk2c-cuda.so")
        tokens = bundle.generate(ids, COUNT, "--driver", driver, *arguments)["ids"]
        with open(file) as counts:
            return tokens, json.load(counts)


def check(source, driver):
    report = Report(f"calls of a GPU's program of {source}")
    bundle, golden = compiled(source, "--topology", "h200x1"), Golden(source)
    prompt = golden.prompts[0]
    tokens, counted = recorded(bundle, driver, prompt["ids"])
    report.equal(tokens, prompt["greedy"]["ids"][:COUNT], "greedy tokens")
    report.equal(counted["graph_launches"], COUNT, "launches of graphs, one a step")
    report.equal(counted["late_allocations"], 0, "allocations behind the first step")
    calls = counted["calls"]
    report.check(calls["cuStreamWaitEvent"] > 0, "launches beside each other")
    for made, given in (("cuMemAlloc_v2", "cuMemFree_v2"), ("cuMemHostAlloc", "cuMemFreeHost"),
                        ("cuStreamCreate", "cuStreamDestroy_v2"), ("cuEventCreate", "cuEventDestroy_v2"),
                        ("cuGraphInstantiateWithFlags", "cuGraphExecDestroy")):
        report.equal(calls[made], calls[given], f"calls of {made} and {given}")
    # The emulated driver takes no cubin, of which one is tried.
    refused = bundle.manifest["device"]["code"] == "cubin"
    report.equal(calls["cuLibraryLoadData"] - refused, calls["cuLibraryUnload"], "calls that load and unload code")
    rank = bundle.json("info")["ranks"][0]
    said = rank["device_bytes"] - CONTEXT_BYTES
    allocated = counted["device_bytes"]
    report.check(said - SLACK <= allocated <= said, f"allocated {allocated} bytes, info says {said}")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2]))
    except Failure as failure:
        sys.exit(f"check_recorded.py: {failure}")
