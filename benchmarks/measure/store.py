"""Results as lines of JSON, one measurement each, so that a run that was stopped goes on where it was.

A line: round, model, compute, point, engine, version, value (tokens/s), probe (bytes/s before and after), load,
attempt. A measurement whose probes lie far from the usual was disturbed; it is taken again, and the least disturbed
attempt counts.
"""
import json
import os
import statistics

from . import Failure

FIELDS = ["round", "model", "compute", "point", "engine", "version", "value", "probe"]
DISTURBED = 0.10  # how far a probe may be from the median of all probes


def key_of(line):
    return tuple(line[name] for name in FIELDS[:5])


class Store:
    def __init__(self, path, max_attempts):
        self.path, self.max_attempts = path, max_attempts
        self.lines = []
        if os.path.exists(path):
            with open(path) as file:
                for number, text in enumerate(file, 1):
                    # The last line of a run that was killed may be half written.
                    if text.endswith("\n"):
                        self.lines.append(self.read(text, number))

    def read(self, text, number):
        try:
            line = json.loads(text)
        except ValueError:
            line = {}
        missing = [name for name in FIELDS if name not in line]
        if missing:
            raise Failure(f"{self.path}:{number}: a result without {missing[0]}; remove the line, or the file")
        return line

    def add(self, line):
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)

    def keep(self, versions):
        """Forgets what other builds of an engine measured. `versions`: engine -> its version now."""
        self.lines = [line for line in self.lines if versions.get(line["engine"], line["version"]) == line["version"]]

    def usual_probe(self):
        """Median of all probes, bytes a second."""
        return statistics.median(probe for line in self.lines for probe in line["probe"])

    def deviation(self, line):
        usual = self.usual_probe()
        return max(abs(probe - usual) / usual for probe in line["probe"])

    def attempts(self, key):
        return [line for line in self.lines if key_of(line) == key]

    def needs_repeat(self, key):
        tried = self.attempts(key)
        return len(tried) < self.max_attempts and min(map(self.deviation, tried)) > DISTURBED

    def chosen(self):
        """The least disturbed attempt at each measurement."""
        best = {}
        for line in self.lines:
            key = key_of(line)
            if key not in best or self.deviation(line) < self.deviation(best[key]):
                best[key] = line
        return list(best.values())

    def repeated(self):
        return len(self.lines) - len({key_of(line) for line in self.lines})


class Series:
    """The rounds of one engine at one point."""

    def __init__(self, lines):
        self.lines = lines
        self.values = [line["value"] for line in lines]
        self.median = statistics.median(self.values)
        self.spread = (max(self.values) - min(self.values)) / self.median
        self.probe = statistics.median(probe for line in lines for probe in line["probe"])


def series(store):
    """(model, compute, point, engine) -> Series."""
    grouped = {}
    for line in store.chosen():
        grouped.setdefault(key_of(line)[1:], []).append(line)
    return {key: Series(lines) for key, lines in grouped.items()}
