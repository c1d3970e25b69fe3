"""Golden results (golden.json, golden.safetensors) and how far a program's are from them. Standard library only."""
import json
import math
import os
import struct
from array import array

from bundles import Failure

OWN_ERRORS = 4  # times the error of a reference's float32 against float64


def widened(data):
    """bfloat16 numbers as float32: the upper halves of their bytes."""
    wide = bytearray(2 * len(data))
    wide[2::4], wide[3::4] = data[0::2], data[1::2]
    return bytes(wide)


def read_safetensors(path):
    """name -> (shape, array of floats). Only float32 and bfloat16 tensors: what a golden file holds."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in ("F32", "BF16"):
            raise Failure(f"{path}: {name} is {entry['dtype']}, neither F32 nor BF16")
        begin, end = entry["data_offsets"]
        values = array("f")
        values.frombytes(data[begin:end] if entry["dtype"] == "F32" else widened(data[begin:end]))
        tensors[name] = (entry["shape"], values)
    return tensors


def own_error(document):
    """How far the references' float32 are from float64, by the golden.json of an ONNX model."""
    measured = document["distance"]
    return max(measured.get("float64", 0.0), measured["transformers_float32_from_float64"])


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
        return rows_of(self.tensors, name)


class Precision:
    """The reference's logits in three precisions, and how often its bfloat16 chose other experts."""

    def __init__(self, folder):
        with open(os.path.join(folder, "precision.json")) as file:
            self.prompts = {prompt["name"]: prompt for prompt in json.load(file)["prompts"]}
        self.tensors = read_safetensors(os.path.join(folder, "precision.safetensors"))

    def rows(self, name):
        return rows_of(self.tensors, name)

    def positions(self, prompt):
        """Positions of a prompt that the rows belong to."""
        return self.prompts[prompt]["positions"]

    def different_choices(self):
        """How many choices of experts are others in bfloat16, and how many there are."""
        counts = [(prompt["bfloat16_choices_that_differ"], prompt["choices"]) for prompt in self.prompts.values()]
        return tuple(map(sum, zip(*counts)))


def rows_of(tensors, name):
    """A tensor as a list of rows; a vector is one row."""
    shape, values = tensors[name]
    width = shape[-1]
    return [values[i : i + width] for i in range(0, len(values), width)]


def best(row):
    """The index of the largest value, the lower of two."""
    return max(range(len(row)), key=row.__getitem__)


def margin(row):
    """How far the largest value is above the second largest."""
    first, second = sorted(row)[:-3:-1]
    return first - second


def root_mean_square(values):
    return math.sqrt(math.fsum(x * x for x in values) / len(values))


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


def same_bits(report, ours, theirs, prompts, whose):
    """Checks that two programs print the same text for every logit of each prompt."""
    for prompt in prompts:
        command = ("logits", "--prompt-ids", ",".join(map(str, prompt["ids"])), "--all", "--json")
        report.check(ours.text(*command) == theirs.text(*command),
                     f"{prompt['name']}: logits have the bits of {whose}")


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
