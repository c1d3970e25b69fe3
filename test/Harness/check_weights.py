"""The planner's packed operands are the program's: check_weights.py CONFIG... [--planned FLAGS] [-- FLAGS].

`k2c plan` counts the weights of its certificate from the families of the model; the runtime form has the slots that the
program reads, each of them, and each expert of one, a range of whole pages of 4,096 bytes. Both must be the same number
for every CONFIG, a folder with a config.json or a path with `*`. A configuration of a family that only the planner
knows is passed over. FLAGS behind `--` are for both commands, which count in f32 where they name no type, those behind
`--planned` for the plan alone. Prints how many were compared.
"""

import glob
import json
import os
import re
import subprocess
import sys

from bundles import split_options

PAGE = 4096
SLOTS = re.compile(r"rt\.weight_slots .*?\bcount (\d+) bytes (\d+) layout .*?>(?: experts (\d+))?")


def run(*command):
    """Standard output and what went wrong, or ""."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, "" if done.returncode == 0 else done.stderr


def compared(folder, flags, planned_flags):
    """Whether the configuration compiles; ends the program where the two differ."""
    ir, error = run("k2c", "compile", folder, "-o", "-", "--emit", "runtime", *flags)
    if "can be planned, not compiled" in error:
        return False
    plan, other = run("k2c", "plan", folder, "--json", *flags, *planned_flags)
    if error or other:
        sys.exit(f"{folder}: {error or other}")
    slots = SLOTS.findall(ir)
    ranges = [(int(count) * int(experts or 1), int(size) // int(experts or 1)) for count, size, experts in slots]
    packed = sum(count * (-(-size // PAGE) * PAGE) for count, size in ranges)
    planned = json.loads(plan)["memory"][0]["parts"]["weights"]
    if planned != packed or not slots:
        sys.exit(f"{folder}: the planner counts {planned} bytes of weights, the {len(slots)} families pack {packed}")
    return True


def main(arguments):
    (patterns, flags), planned_flags = split_options(arguments), []
    if "--planned" in patterns:
        at = patterns.index("--planned")
        patterns, planned_flags = patterns[:at], patterns[at + 1:]
    if "--compute" not in flags:
        flags = [*flags, "--compute", "f32"]
    folders = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if os.path.isdir(path)]
    compiled = [compared(folder, flags, planned_flags) for folder in folders if os.path.exists(folder + "/config.json")]
    print(f"{sum(compiled)} configurations compared")


main(sys.argv[1:])
