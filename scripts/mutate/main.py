"""Plants mutants in a clone of HEAD, one at a time; the test that is named for each must fail.

The table is test/Mutants/*.txt (its format: scripts/mutate/table.py). A mutant that no test notices is printed as a
survivor: it needs a test, or `equal` and its reason in docs/Testing.md. A text that no longer stands in its file once,
a mutant that does not compile and a filter that fails without the mutant are errors of the table.

examples:
  scripts/mutate.sh                            all of the table; goes on where the last run at this commit ended
  scripts/mutate.sh 'sampler|top-p'            those whose name or file matches the expression
  scripts/mutate.sh --check                    the table against the working tree, without building: under a second
  scripts/mutate.sh --list kernels             names, files and filters
  scripts/mutate.sh --drawn 200 --seed 7       200 drawn mutants over all folders, and the kill rate of each folder
  scripts/mutate.sh --drawn 20 --seed 7 --folder lib/Planner
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import draw
import table
from settings import Settings
from tree import Tree, TreeError, git, tail


class Results:
    """Verdicts by commit and mutant, a line of JSON each, so that a run that was ended goes on."""

    def __init__(self, path, commit, again):
        self.path, self.commit, self.known = path, commit, {}
        if os.path.exists(path) and not again:
            with open(path, encoding="utf-8") as lines:
                for line in map(json.loads, lines):
                    if line["commit"] == commit:
                        self.known[line["key"]] = line

    def add(self, key, name, verdict, seconds, said=""):
        """Records one verdict; errors are tried again."""
        line = {"commit": self.commit, "key": key, "mutant": name, "verdict": verdict, "seconds": round(seconds, 1)}
        self.known[key] = line
        if verdict != "error":
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")
        return dict(line, said=said)


class Progress:
    """One line a mutant: how many are done, the verdict, and how long the others will take."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()

    def say(self, verdict, name, seconds):
        """The line of one mutant."""
        self.done += 1
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done) / 60
        print(f"[{self.done:3}/{self.total}] {verdict:10} {name:44} {seconds:6.1f} s   about {left:.0f} min left",
              flush=True)


def judge(tree, path, text, filters):
    """(verdict, what an error says): killed when one of `filters` fails with `text` as the file `path`, error when it
    does not compile."""
    for test in filters:
        tree.prepare(test)
    with tree.planted(path, text):
        for test in filters:
            built, output = tree.build(test.targets)
            if not built:
                return "error", f"does not compile:\n{tail(output)}"
            if not tree.passes(test):
                return "killed", ""
    return "survived", ""


def run_table(tree, mutants, settings, results):
    """Judges the mutants; the exit code."""
    progress, lines = Progress(len(mutants)), []
    for mutant in mutants:
        start, key = time.monotonic(), mutant.key()
        if key in results.known:
            line = dict(results.known[key], said="")
        else:
            try:
                verdict, said = judge(tree, mutant.file, mutant.planted(tree.read(mutant.file)),
                                      [settings.filter(mutant.fails)])
            except (TreeError, table.TableError, OSError) as error:
                verdict, said = "error", str(error)
            line = results.add(key, mutant.name, verdict, time.monotonic() - start, said)
        verdict = line["verdict"]
        if mutant.equal and verdict in ("killed", "survived"):
            verdict = "equivalent" if verdict == "survived" else "error"
            line["said"] = "" if verdict == "equivalent" else "is called equivalent, and a test tells it"
        lines.append((mutant, verdict, line["said"]))
        progress.say(verdict, mutant.name, line["seconds"])
    count = {kind: sum(verdict == kind for _, verdict, _ in lines)
             for kind in ("killed", "equivalent", "survived", "error")}
    for mutant, verdict, said in lines:
        if verdict == "error":
            print(f"error: {mutant.place}: mutant {mutant.name}: {said}")
    for mutant, verdict, _ in lines:
        if verdict == "survived":
            print(f"survived: {mutant.name} ({mutant.file}): {mutant.why}; '{mutant.fails}' passes with it")
    print(f"{len(lines)} mutants: {count['killed']} killed, {count['equivalent']} equivalent, "
          f"{count['survived']} survived, {count['error']} errors of the table")
    return 1 if count["survived"] or count["error"] else 0


def run_drawn(tree, settings, results, wanted, seed, folder):
    """Judges `wanted` drawn mutants that compile, and prints the kill rate of each folder."""
    folders = settings.drawn_folders()
    if folder:
        folders = {name: filters for name, filters in folders.items() if name == folder}
        if not folders:
            raise ValueError(f"no mutants are drawn in '{folder}'; folders: {', '.join(settings.drawn_folders())}")
    progress, tally, survivors = Progress(wanted), {}, []
    for where, path, kind, begin, end, new in draw.drawn(tree.folder, folders, seed):
        if progress.done == wanted:
            break
        start, text = time.monotonic(), tree.read(path)
        place = f"{path}:{text.count(chr(10), 0, begin) + 1}"
        key = f"drawn:{path}:{begin}:{end}:{new}"
        if key in results.known:
            line = results.known[key]
        else:
            verdict, _ = judge(tree, path, text[:begin] + new + text[end:],
                               [settings.filter(one) for one in folders[where]])
            line = results.add(key, place, "no code" if verdict == "error" else verdict, time.monotonic() - start)
        tally.setdefault(where, []).append(line["verdict"])
        if line["verdict"] == "no code":
            continue
        change = f"{kind}: '{' '.join(text[begin:end].split())}' -> '{new}'"
        if line["verdict"] == "survived":
            survivors.append(f"survived: {place}: {change}")
        progress.say(line["verdict"], f"{place} {kind}", line["seconds"])
    print("\n".join(survivors + rates(tally)))
    return 0


def rates(tally):
    """The kill rate of each folder and of all."""
    lines, all_killed, all_judged = [], 0, 0
    for where, verdicts in sorted(tally.items()):
        killed, judged = verdicts.count("killed"), len(verdicts) - verdicts.count("no code")
        all_killed, all_judged = all_killed + killed, all_judged + judged
        rate = f"{100 * killed / judged:.0f} %" if judged else "none"
        lines.append(f"{where:24} {killed:3} of {judged:3} killed   {rate:>6}   "
                     f"{verdicts.count('no code')} did not compile")
    lines.append(f"{all_judged} drawn mutants: {all_killed} killed, {all_judged - all_killed} survived")
    return lines


def parse(arguments):
    """The options."""
    parser = argparse.ArgumentParser(prog="mutate.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="mutants whose name or file this matches")
    parser.add_argument("--check", action="store_true", help="hold the table against the working tree, and end")
    parser.add_argument("--list", action="store_true", help="print the mutants, and end")
    parser.add_argument("--again", action="store_true", help="judge anew what has a verdict at this commit")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N mutants that compile instead of the table's")
    parser.add_argument("--seed", type=int, help="what --drawn begins with")
    parser.add_argument("--folder", help="draw in this folder only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files compiled at a time")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), "..", ".."), help="the repository")
    parser.add_argument("--work", help="folder of clone and results; default ROOT/build/mutate")
    options = parser.parse_args(arguments)
    if (options.drawn is None) != (options.seed is None):
        parser.error("--drawn and --seed go together: without a seed nobody can repeat the draw")
    if options.folder and options.drawn is None:
        parser.error("--folder goes with --drawn")
    return options


def main(arguments):
    """Runs what the options say; 0: no survivor and no error, 1: some, 2: the options or the tree cannot be used."""
    options = parse(arguments)
    root = os.path.realpath(options.root)
    settings = Settings(root)
    mutants = table.read(root)
    chosen = [mutant for mutant in mutants if not options.patterns or
              any(re.search(pattern, one) for pattern in options.patterns for one in (mutant.name, mutant.file))]
    if not chosen:
        raise ValueError(f"no mutant matches {' '.join(options.patterns)}; --list prints them")
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:44} {mutant.file:44} {mutant.fails}")
        return 0
    problems = table.problems(root, mutants, settings)
    print("".join(f"error: {problem}\n" for problem in problems), end="")
    if options.check or problems:
        print(f"{len(mutants)} mutants, {len(problems)} errors of the table")
        return 1 if problems else 0
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        print("mutate: the working tree has changes that HEAD has not: they are not in the clone", file=sys.stderr)
    work = os.path.abspath(options.work or os.path.join(root, "build", "mutate"))
    tree = Tree(root, work, settings, options.jobs)
    results = Results(os.path.join(work, "results.jsonl"), tree.commit, options.again)
    if options.drawn is not None:
        return run_drawn(tree, settings, results, options.drawn, options.seed, options.folder)
    return run_table(tree, chosen, settings, results)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as by Ctrl-C, sources become sound again
    try:
        sys.exit(main(sys.argv[1:]))
    except (ValueError, TreeError, table.TableError) as problem:
        print(f"mutate: {problem}", file=sys.stderr)
        sys.exit(2)
    except subprocess.CalledProcessError as problem:
        print(f"mutate: {' '.join(problem.cmd)}: {problem.stderr or problem}", file=sys.stderr)
        sys.exit(2)
