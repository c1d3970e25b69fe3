"""The remarks about the arena's peak against the scheduled form: arena_peak.py SCHEDULED.mlir REMARKS.

The named buffers come by falling size and overlap nowhere; with the others, the bytes between them and the partials of
split-KV attention they are `mem.peak` of the module.
"""
import re
import sys


def main(form, remarks):
    with open(form, encoding="utf8") as file:
        peak = int(re.search(r"^module .*?mem\.peak = (\d+)", file.read(), re.M)[1])
    with open(remarks, encoding="utf8") as file:
        lines = [line for line in file if line.startswith("[assign-memory] arena at its peak: ")]
    numbers = [dict((key, int(value)) for key, value in re.findall(r"(\w+) = (-?\d+)", line.split(" {")[-1]))
               for line in lines]
    *named, rest = numbers
    if not named or rest.keys() != {"other_bytes", "unused_bytes", "partial_bytes", "peak_bytes"}:
        sys.exit(f"no buffers are named, or the rest is not: {lines}")
    sizes = [buffer["bytes"] for buffer in named]
    if sizes != sorted(sizes, reverse=True):
        sys.exit(f"not by falling size: {sizes}")
    ends = [0]
    for buffer in sorted(named, key=lambda each: each["offset"]):
        if buffer["offset"] < ends[-1]:
            sys.exit(f"overlaps the buffer before it: {buffer}")
        ends.append(buffer["offset"] + buffer["bytes"])
    total = sum(sizes) + rest["other_bytes"] + rest["unused_bytes"] + rest["partial_bytes"]
    if not total == rest["peak_bytes"] == peak or min(rest.values()) < 0:
        sys.exit(f"{total} bytes are accounted for, {rest['peak_bytes']} stated, the module has {peak}")


main(*sys.argv[1:])
