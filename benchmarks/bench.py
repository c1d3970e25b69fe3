"""Measures k2c, and its peers beside it, and writes docs/performance.md. See scripts/bench.sh --help.

Both sides must see the same machine: engines take turns at each point, rounds follow one another, and a probe of the
memory's speed runs before and after each measurement. Where a probe is more than a tenth off the median of all, the
measurement is taken again, at most --attempts times in all. Results are lines of JSON in the work folder; a second run
goes on.
"""
import argparse
import json
import os
import sys
import time

import checkpoints
from measure import Failure, engines, page, points
from measure.store import Store

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = """examples:
  scripts/bench.sh                                              k2c alone: all models and points, 3 rounds
  scripts/bench.sh --peers --rounds 5                           llama.cpp and transformers, too; installs them first
  scripts/bench.sh --models dsv3 --compute bf16 --points pp512,tg1,tg8@128
  scripts/bench.sh --checkpoint mine=FOLDER --models mine       a checkpoint of your own
  scripts/bench.sh --page-only                                  writes the page again from the results there are

points: ppN, a cold prompt of N tokens; tgB@C, B sequences that decode together after C tokens each (tgB: after one).
"""


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", epilog=EXAMPLES, allow_abbrev=False,
                                     description="Measures how fast compiled programs are and tells it on a page.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: [word for word in text.split(",") if word]
    add = parser.add_argument
    add("--peers", action="store_true", help="measure llama.cpp and transformers beside k2c")
    add("--rounds", type=int, default=3, help="times each point is measured (default 3)")
    add("--models", type=words, default=points.MODELS, help="default dsv3,qwen3moe,olmoe")
    add("--compute", type=words, default=points.COMPUTES, help="default bf16,f32")
    add("--points", type=words, default=[], help="default pp512,tg1,tg1@512,tg8@128,tg32@128; dsv3 also tg1@8192")
    add("--steps", type=int, default=32, help="decoding steps that are timed (default 32)")
    add("--repeats", type=int, default=3, help="repeats within a measurement, of which the median counts (default 3)")
    add("--attempts", type=int, default=3, help="at a measurement that something disturbed (default 3)")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: as many as processors")
    add("--realtime", action="store_true", help="what is timed runs before all other programs (chrt; needs root)")
    add("--pause", type=float, default=0, help="seconds between measurements, for those others (default 0)")
    add("--checkpoint", action="append", default=[], metavar="NAME=FOLDER", help="where a model lies; others are made")
    add("--work", default=os.path.join(ROOT, "build", "bench"), help="results, bundles, checkpoints (build/bench)")
    add("--page", default=os.path.join(ROOT, "docs", "performance.md"), help="the page (docs/performance.md)")
    add("--prepare-only", action="store_true", help="write checkpoints, bundles and GGUF files; measure nothing")
    add("--page-only", action="store_true", help="write the page from the results there are")
    add("--cache-dir", help="of compiled kernels (default: that of k2c compile)")
    engines.peer_options(add)
    add("--tools", default=os.path.join(ROOT, "build", "bin"), help="folder of k2c, k2rt-run and k2c-roofs; not built")
    args = parser.parse_args()
    if min(args.rounds, args.steps, args.repeats, args.threads, args.attempts) < 1:
        parser.error("--rounds, --steps, --repeats, --threads and --attempts are at least 1")
    for name in args.compute:
        if name not in points.COMPUTES:
            parser.error(f"--compute {name}: choose from {', '.join(points.COMPUTES)}")
    try:
        points.of_model("", args.points)
    except ValueError as error:
        parser.error(str(error))
    return args


class Setup:
    """What the engines need to know."""

    def __init__(self, args):
        self.tools, self.work, self.peers = args.tools, os.path.abspath(args.work), os.path.abspath(args.peers_folder)
        self.threads, self.steps, self.repeats, self.points = args.threads, args.steps, args.repeats, args.points
        self.with_peers, self.peers_python = args.peers, engines.peer_python(args)
        self.cache = ["--cache-dir", args.cache_dir] if args.cache_dir else []
        # Other programs wait while a measurement runs, instead of sharing its processors.
        self.first = ["chrt", "--rr", "1"] if args.realtime else []
        if args.realtime:
            engines.output([*self.first, "true"])
        self.own = {}
        for one in args.checkpoint:
            name, equals, folder = one.partition("=")
            if not equals or not os.path.exists(os.path.join(folder, "config.json")):
                raise Failure(f"--checkpoint {one}: write NAME=FOLDER, the folder with a config.json")
            self.own[name] = os.path.abspath(folder)
        for model in args.models:
            if model not in self.own and model not in checkpoints.CONFIGS:
                raise Failure(f"--models {model}: choose from {', '.join(checkpoints.CONFIGS)}, or say where it lies "
                              f"with --checkpoint {model}=FOLDER")

    def say(self, text):
        sys.stderr.write(f"==> {text}\n")

    def checkpoint(self, model):
        """The folder of a model; one of the project's own is made when it is missing."""
        if model in self.own:
            return self.own[model]
        folder = os.path.join(self.work, "checkpoints", model)
        if not os.path.exists(os.path.join(folder, "config.json")):
            self.say(f"writing the checkpoint {model}, random weights")
            checkpoints.write(model, folder)
        return folder

    def python(self):
        return self.peers_python

    def probe(self, *flags):
        """What k2c-roofs says now."""
        tool = engines.need(self.tools, "k2c-roofs", "build it: ninja -C build k2c-roofs")
        return json.loads(engines.output([*self.first, tool, "--threads", str(self.threads), *flags]))


    def roofs(self):
        """The fastest reads and multiply-adds that any run in this work folder saw."""
        path = os.path.join(self.work, "roofs.jsonl")
        with open(path, "a") as file:
            file.write(json.dumps(self.probe("--peaks", "--passes", "20")) + "\n")
        with open(path) as file:
            seen = [json.loads(line) for line in file]
        return {name: max(one[name] for one in seen) for name in seen[0]}


class Bench:
    def __init__(self, args, setup):
        self.args, self.setup = args, setup
        self.engines = engines.make(setup)
        self.store = Store(os.path.join(setup.work, "results.jsonl"), args.attempts)
        self.store.keep({engine.name: engine.version for engine in self.engines})
        self.begin, self.done = time.monotonic(), 0
        self.last = {}  # k2c's value at a point, for the progress line

    def cells(self, number):
        """The measurements of a round in order: at each point the engines take turns."""
        for model in self.args.models:
            for compute in self.args.compute:
                for point in points.of_model(model, self.args.points):
                    for engine in self.engines:
                        if engine.measures(model, compute, point):
                            yield (number, model, compute, point.name, engine.name), engine, point

    def measure(self, key, engine, point, total):
        number, model, compute, name, _ = key
        engine.prepare(model, compute, point)
        time.sleep(self.args.pause)
        before = self.setup.probe()["read_bytes_per_s"]
        found = engine.measure(model, compute, point)
        after = self.setup.probe()["read_bytes_per_s"]
        attempt = len(self.store.attempts(key))
        self.store.add({"round": number, "model": model, "compute": compute, "point": name, "engine": engine.name,
                        "version": engine.version, "probe": [before, after], "load": os.getloadavg()[0],
                        "attempt": attempt, **found})
        self.done += attempt == 0
        again = f", again ({attempt})" if attempt else ""
        sys.stderr.write(f"[{self.done}/{total}, {time.monotonic() - self.begin:.0f} s] round {number + 1} {model} "
                         f"{compute} {name} {engine.name}: {found['value']:.1f} tokens/s, memory "
                         f"{before / 1e9:.1f} and {after / 1e9:.1f} GB/s{again}\n")

    def prepare(self):
        for (_, model, compute, _, _), engine, point in self.cells(0):
            engine.files(model, compute, point)

    def run(self):
        rounds = [list(self.cells(number)) for number in range(self.args.rounds)]
        total = sum(map(len, rounds))
        self.done = sum(bool(self.store.attempts(cell[0])) for cells in rounds for cell in cells)
        try:
            for cells in rounds:
                for cell in cells:
                    if not self.store.attempts(cell[0]):
                        self.measure(*cell, total)
            for cell in (cell for cells in rounds for cell in cells):
                while self.store.needs_repeat(cell[0]):
                    self.measure(*cell, total)
        finally:
            for engine in self.engines:
                engine.close()


def main():
    args = arguments()
    try:
        setup = Setup(args)
        os.makedirs(setup.work, exist_ok=True)
        bench = Bench(args, setup)
        if args.prepare_only:
            return bench.prepare()
        if not args.page_only:
            bench.run()
        if not bench.store.lines:
            raise Failure(f"{bench.store.path} has no results; run without --page-only")
        page.write(args, setup, bench)
        setup.say(f"wrote {os.path.relpath(args.page)}")
    except Failure as failure:
        sys.exit(f"bench: error: {failure}")
    except KeyboardInterrupt:
        sys.stderr.write("bench: stopped; the same command goes on\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
