"""The page of a check: written anew after each row, so that a check that is stopped leaves what it has found."""
import os
import textwrap

WIDTH = 120  # of a line that is no row of a table

INTRODUCTION = """# What a GPU says

Written by `scripts/gpu-check.sh` on the machine that the first table describes. Programs were compiled, and their
references computed, on another machine, by processors. A row that failed is a finding of its own below.
"""


def cell(value):
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def wrapped(text, first=""):
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first),
                         break_long_words=False, break_on_hyphens=False)


class Table:
    def __init__(self, columns):
        self.columns, self.rows = columns, []

    def lines(self):
        yield f"| {' | '.join(self.columns)} |"
        yield f"|{'---|' * len(self.columns)}"
        for row in self.rows:
            yield f"| {' | '.join(map(cell, row))} |"


class Page:
    def __init__(self, path):
        self.path, self.sections, self.findings, self.state = path, {}, [], "is under way"

    def section(self, title, text, columns):
        self.sections[title] = (text, Table(columns))

    def row(self, title, *values):
        self.sections[title][1].rows.append(values)
        self.write()
        print(f"{title}: {' | '.join(map(cell, values))}", flush=True)

    def finding(self, text):
        self.findings.append(text)
        self.write()
        print(f"finding: {text}", flush=True)

    def end(self, state):
        self.state = state
        self.write()

    def write(self):
        lines = [INTRODUCTION, f"The check {self.state}.", "", "## Findings", ""]
        lines += [wrapped(text, "- ") for text in self.findings] or ["None so far."]
        for title, (text, table) in self.sections.items():
            if table.rows:
                lines += ["", f"## {title}", "", *([wrapped(text), ""] if text else []), *table.lines()]
        partial = self.path + ".partial"
        with open(partial, "w") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(partial, self.path)
