"""check_dequantised.py CHECKPOINT FOLDER [k2c compile options]: e4m3 blocks compute as the f32 weights they stand for.

FOLDER receives a copy of the checkpoint whose weights were dequantised beforehand. Both programs must give the same
bits for a prompt, whole and token by token. The first keeps the blocks as they are: a byte for an element, and scales.
"""
import sys

from blocks import Tensors, dequantise
from bundles import Failure, compiled
from golden import Report

PROMPT = [3, 141, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95, 2, 88, 41, 97, 16]


def check(source, folder, options):
    report = Report(f"{source} and its dequantised copy {' '.join(options)}")
    tensors = Tensors(source)
    stored = {name: entry for name, entry in tensors.entries.items() if entry[0] == "F8_E4M3"}
    elements = sum(len(entry[2]) for entry in stored.values())
    report.check(elements > 0, f"{len(stored)} tensors in blocks")
    dequantise(tensors)
    blocks, wide = compiled(source, *options), compiled(tensors.write(folder), *options)
    for arguments in (("--all", "--threads", 2), ("--all", "--chunk", 1, "--threads", 1)):
        mine, theirs = blocks.logits(PROMPT, *arguments), wide.logits(PROMPT, *arguments)
        same = [row.tobytes() for row in mine] == [row.tobytes() for row in theirs]
        report.check(same, f"logits of {len(PROMPT)} positions {' '.join(map(str, arguments))}: the same bits")
    mine, theirs = blocks.manifest["memory"]["weights"], wide.manifest["memory"]["weights"]
    report.check(theirs - mine > 2 * elements, f"weights take {mine} bytes, dequantised {theirs}")
    return report


def main():
    try:
        report = check(sys.argv[1], sys.argv[2], sys.argv[3:])
    except Failure as failure:
        sys.exit(f"check_dequantised.py: {failure}")
    sys.exit(report.finish())


if __name__ == "__main__":
    main()
