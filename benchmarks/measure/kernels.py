"""Matrix products on one core: the compiler's kernels and oneDNN's beside the loop peak, by kernel-bench.

All in one process, repetitions interleaved at random, in CPU time, so that a shared machine disturbs little.
"""
import json
import os

from . import engines

REPETITIONS = 9
OF_PEAK, OF_ONEDNN = 0.95, 0.95  # wanted: of the peak from 512 rows on, of oneDNN below


def measure(setup):
    """Name of a benchmark -> median FLOP a second; kept in the work folder for this build of kernel-bench. Empty where
    peers were never measured.
    """
    tool = os.path.join(setup.tools, "kernel-bench")
    if not os.access(tool, os.X_OK):
        return {}
    path = os.path.join(setup.work, f"kernels-{engines.digest(tool)}.json")
    if not os.path.exists(path) and not setup.with_peers:
        return {}
    if not os.path.exists(path):
        setup.say("matrix products on one core")
        engines.output([*setup.first, tool, "--benchmark_filter=^(Linear|OneDNN)/(bf16|f32)/|^Peak",
                        "--benchmark_min_time=0.03",
                        f"--benchmark_repetitions={REPETITIONS}", "--benchmark_enable_random_interleaving=true",
                        "--benchmark_report_aggregates_only=true", f"--benchmark_out={path}.partial",
                        "--benchmark_out_format=json"], env={**os.environ, "OMP_NUM_THREADS": "1"})
        os.replace(path + ".partial", path)
    with open(path) as file:
        found = json.load(file)["benchmarks"]
    return {one["run_name"]: one["FLOP/s"] for one in found if one.get("aggregate_name") == "median"}


def rows_of(rates):
    """(type, n, k, rows, k2c, oneDNN or 0, peak) for each product, FLOP a second."""
    found = []
    for name, rate in rates.items():
        kind, *rest = name.split("/")
        if kind != "Linear":
            continue
        n, k, rows = (int(part.split(":")[1]) for part in rest[1:4])
        other, peak = rates.get(name.replace("Linear", "OneDNN"), 0), rates.get("Peak/" + rest[0], 0)
        found.append((rest[0], n, k, rows, rate, other, peak))
    return sorted(found)
