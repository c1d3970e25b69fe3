"""Golden results (golden.json, golden.safetensors) and how far a program's are from them. Standard library only."""
import json
import math
import os
import struct
from array import array

from bundles import Failure


def read_safetensors(path):
    """name -> (shape, array of floats). Only float32 tensors: what a golden file holds."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            raise Failure(f"{path}: {name} is {entry['dtype']}, not F32")
        begin, end = entry["data_offsets"]
        values = array("f")
        values.frombytes(data[begin:end])
        tensors[name] = (entry["shape"], values)
    return tensors


class Golden:
    """The golden results beside a checkpoint."""

    def __init__(self, folder):
        with open(os.path.join(folder, "golden.json")) as file:
            self.document = json.load(file)
        self.prompts = self.document["prompts"]
        self.batch = self.document.get("batch")
        tensors = os.path.join(folder, "golden.safetensors")
        self.tensors = read_safetensors(tensors) if os.path.exists(tensors) else {}

    def rows(self, name):
        """A tensor as a list of rows; a vector is one row."""
        shape, values = self.tensors[name]
        width = shape[-1]
        return [values[i : i + width] for i in range(0, len(values), width)]


def distance(got, want):
    """The largest absolute difference between two lists of rows of one shape; NaN where either has one."""
    if [len(row) for row in got] != [len(row) for row in want]:
        raise Failure(f"{len(got)} rows of {len(got[0])} values, expected {len(want)} of {len(want[0])}")
    worst = 0.0
    for got_row, want_row in zip(got, want):
        for x, y in zip(got_row, want_row):
            difference = abs(x - y)
            if math.isnan(difference):
                return difference
            worst = max(worst, difference)
    return worst


def scale(values):
    """The largest magnitude in a list of rows."""
    return max(abs(x) for row in values for x in row)


class Report:
    """Collects what was measured; fails at the end, so that one run tells everything."""

    def __init__(self, title):
        self.title, self.lines, self.failed = title, [], 0

    def check(self, ok, what):
        self.failed += not ok
        self.lines.append(f"  {'ok  ' if ok else 'FAIL'} {what}")

    def within(self, value, bound, what):
        self.check(value <= bound, f"{what}: {value:.3g} (at most {bound:.3g})")

    def equal(self, got, want, what):
        detail = "" if got == want else f": {str(got)[:200]}, expected {str(want)[:200]}"
        self.check(got == want, what + detail)

    def finish(self):
        """Prints everything and returns the exit status."""
        print(self.title, f"{self.failed} failed" if self.failed else "passed", sep=": ")
        print("\n".join(self.lines))
        return 1 if self.failed else 0
