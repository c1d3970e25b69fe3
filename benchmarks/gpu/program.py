"""A program of a packed folder, on a driver."""
import json
import os
import shutil
import tempfile
from array import array

from machine import Failure


class Program:
    def __init__(self, machine, case, folder):
        self.machine, self.case, self.folder = machine, case, folder
        self.bundle = os.path.join(folder, case["bundle"])
        self.complete()

    def complete(self):
        """Puts the files into the bundle that all of the folder share."""
        common = os.path.join(self.folder, "common")
        for at, _, names in os.walk(common):
            for name in names:
                kept = os.path.join(at, name)
                path = os.path.join(self.bundle, os.path.relpath(kept, common))
                if not os.path.exists(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    shutil.copy2(kept, path)

    def run(self, *arguments, limit=60, driver=None, environment=None, before=()):
        """What DIR/run prints, and its seconds."""
        device = () if driver else ("--device", self.machine.ordinal)
        command = [*before, os.path.join(self.bundle, "run"), *arguments, "--driver", driver or self.machine.driver]
        return self.machine.output([*command, *device], limit, env={**os.environ, **(environment or {})})

    def json(self, *arguments, **options):
        return json.loads(self.run(*arguments, "--json", **options)[0])

    def reference(self, name):
        """Logits that a processor computed."""
        values = array("f")
        with open(os.path.join(self.folder, name), "rb") as file:
            values.frombytes(file.read())
        return values

    def tokens(self, prompt, count):
        ids = ",".join(map(str, prompt["ids"]))
        return self.json("generate", "--prompt-ids", ids, "-n", count, "--ignore-eos")["ids"]

    def logits(self, ids, *more, **options):
        rows = self.json("logits", "--prompt-ids", ",".join(map(str, ids)), "--all", *more, **options)["logits"]
        return array("f", sum(rows, []))

    def batch(self, prompts, **options):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(prompts, file)
            file.flush()
            answers = self.json("logits", "--batch-file", file.name, **options)
        return array("f", sum((row for each in answers for row in each["logits"]), []))

    def hidden(self, ids, **options):
        """Layer -> its rows as one array, in the order of layers."""
        layers = self.json("hidden", "--prompt-ids", ",".join(map(str, ids)), **options)["layers"]
        return {name: array("f", sum(rows, [])) for name, rows in layers.items()}


def difference(got, want):
    """"": the same bits; else how many numbers have others, and the first two."""
    if len(got) != len(want):
        return f"{len(got)} numbers, expected {len(want)}"
    if got.tobytes() == want.tobytes():
        return ""
    a, b = got.tobytes(), want.tobytes()
    differ = [i for i in range(len(got)) if a[4 * i : 4 * i + 4] != b[4 * i : 4 * i + 4]]
    return f"{len(differ)} of {len(got)} numbers, number {differ[0]} is {got[differ[0]]!r} and not {want[differ[0]]!r}"


def first_difference(got, want):
    """The first layer whose rows have other bits, and what differs; none: no layer has."""
    for layer in want:
        if layer not in got:
            raise Failure(f"there is no layer {layer}")
        if text := difference(got[layer], want[layer]):
            return layer, text
    return None
