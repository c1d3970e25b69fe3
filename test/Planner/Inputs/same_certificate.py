"""The memory of a plan of one rank is what the bundle's `info` states: same_certificate.py PLAN.json INFO.json."""

import json
import sys


def main(plan_path, info_path):
    with open(plan_path) as plan_file, open(info_path) as info_file:
        ranks, rank = json.load(plan_file)["memory"], json.load(info_file)["ranks"][0]
    parts = dict(ranks[0]["parts"])
    expected = dict(rank["owned"], reserve=rank["reserve_bytes"])
    arena = sum(parts.pop(name, 0) for name in ("arena", "scratch", "logits"))
    parts["arena"] = arena
    for name, size in expected.items():
        if parts.get(name, 0) != size:
            sys.exit(f"{name}: the plan says {parts.get(name, 0)}, the bundle {size}")
    if sum(parts.values()) != rank["peak_bytes"]:
        sys.exit(f"the plan sums to {sum(parts.values())}, the bundle to {rank['peak_bytes']}")


main(*sys.argv[1:])
