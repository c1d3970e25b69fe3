"""The memory of a plan of one rank is what the bundle's `info` states: same_certificate.py PLAN.json INFO.json.

Code is known when the program is linked, which a plan does not do: the bundle has it beside what was planned.
"""

import json
import sys


def main(plan_path, info_path):
    with open(plan_path) as plan_file, open(info_path) as info_file:
        ranks, rank = json.load(plan_file)["memory"], json.load(info_file)["ranks"][0]
    parts = dict(ranks[0]["parts"])
    expected = dict(rank["owned"], reserve=rank["reserve_bytes"])
    code = expected.pop("code")
    arena = sum(parts.pop(name, 0) for name in ("arena", "scratch", "logits"))
    parts["arena"] = arena
    for name, size in expected.items():
        if parts.get(name, 0) != size:
            sys.exit(f"{name}: the plan says {parts.get(name, 0)}, the bundle {size}")
    if code <= 0 or sum(parts.values()) + code != rank["peak_bytes"]:
        sys.exit(f"the plan sums to {sum(parts.values())}, the bundle to {rank['peak_bytes']}, {code} of it code")


main(*sys.argv[1:])
