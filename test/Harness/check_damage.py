"""Damages every file of a bundle; each run must name the file, or print the same as before, bit by bit.

usage: check_damage.py CHECKPOINT [--places N] [--seed S]

The bundle is compiled with limits so small that the prompts read every expert, both forms of latent attention and all
pages of the cache, which is checked. Then, file by file, N times: bytes at a random place change (one, or up to 4,096
in a row), and once the file is cut at a random length; never two damages at a time. A damage that ends in a signal,
another exit code than 1, or other tokens or logits fails. `run` cannot check what the system executes of it before its
first line: where such damage ends it by a signal, before anything is printed, `k2c verify` must name it. All of these
are counted.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from bundles import Bundle, Failure, compile_into

CONTEXT, SEQUENCES, STEP = 128, 2, 128


def random_prompts(vocab):
    """Two that fill the cache together, and one for each form of attention."""
    rng = random.Random(0)
    return [[rng.randrange(vocab) for _ in range(count)] for count in (CONTEXT, CONTEXT, CONTEXT, 3, 1)]


def check_coverage(bundle, prompts):
    """The prompts read every expert, both forms and all pages."""
    manifest = bundle.manifest
    used = collections.defaultdict(set)
    for prompt in prompts:
        layers = bundle.json("routes", "--prompt-ids", ",".join(map(str, prompt)))["layers"]
        for layer, routes in layers.items():
            for experts in routes["experts"]:
                used[layer].update(experts)
    every = set(range(manifest["model"]["experts"]))
    if len(used) != len(manifest["model"]["moe_layers"]) or any(experts != every for experts in used.values()):
        raise Failure("the prompts do not read every expert")
    crossover = manifest["forms"]["prompt_expanded_at_least"]
    if not min(map(len, prompts)) < crossover <= STEP // SEQUENCES:
        raise Failure(f"the prompts have one form of attention: expanded from {crossover} tokens on")
    if manifest["limits"]["pages"] * 64 != CONTEXT * SEQUENCES:
        raise Failure(f"the prompts do not fill the {manifest['limits']['pages']} pages of the cache")


class Bench:
    """The bundle, its prompts, and what its commands print while it is sound."""

    def __init__(self, bundle, batch):
        self.bundle, self.batch = bundle, batch
        self.expected = self.text(), self.logits()

    def run(self, *arguments):
        command = [os.path.join(self.bundle, "run"), *arguments, "--json", "--threads", "2"]
        return subprocess.run(command, capture_output=True)

    def logits(self):
        return self.run("logits", "--all", "--batch-file", self.batch)

    def text(self):
        return self.run("generate", "--prompt", "In the beginning was the word", "-n", "8", "--ignore-eos")

    @staticmethod
    def results(done):
        """What a command computed: its output without the speeds, which generated text has."""
        if not done.stdout.startswith(b'{"prompt_ids"'):
            return done.stdout
        printed = json.loads(done.stdout)
        return [printed[key] for key in ("prompt_ids", "ids", "text")]

    def verdict(self, name):
        """What the damaged bundle does: named, harmless, or why it is neither."""
        for command, expected in zip((self.text, self.logits), self.expected):
            try:
                done = command()
            except OSError as error:  # the system does not execute it
                return self.by_verify(name, f"is not executed ({error.strerror})")
            said = done.stderr.decode(errors="replace")
            if done.returncode == 1 and not done.stdout and said.startswith("run: error: ") and said.count("\n") == 1:
                # A damaged list may say anything of any file: what it says is then held against it by name.
                place = f"run: error: {os.path.realpath(self.bundle)}/{name}:"
                if said.startswith(place) or name == "files.json" and "files.json" in said:
                    return "named"
            if done.returncode != 0:
                how = f"exit {done.returncode}: {said[:300]}"
                return self.by_verify(name, how) if name == "run" and not done.stdout else how
            if self.results(done) != self.results(expected):
                return "other results"
        return "harmless"

    def by_verify(self, name, how):
        done = subprocess.run(["k2c", "verify", self.bundle], capture_output=True, text=True)
        return "named by verify" if name == "run" and done.returncode == 1 and "/run: " in done.stderr else how


def listed(verdicts):
    return ", ".join(f"{count} {what}" for what, count in sorted(verdicts.items()))


def damages(data, places, rng):
    """Contents of the file that differ from `data`: (description, offset, bytes), and once (description, length)."""
    for _ in range(places):
        at = rng.randrange(len(data))
        length = min(rng.choice((1, 1, 16, 4096)), len(data) - at)
        changed = bytes(byte ^ rng.randrange(1, 256) for byte in data[at:at + length])
        yield f"{length} bytes at {at}", at, changed
    yield f"cut at {(at := rng.randrange(len(data)))} bytes", at, None


def damage(bench, path, name, places, rng):
    """Counts the verdicts of one file."""
    with open(path, "rb") as file:
        data = file.read()
    verdicts = collections.Counter()
    for what, at, changed in damages(data, places, rng):
        with open(path, "r+b") as file:
            if changed is None:
                file.truncate(at)
            else:
                file.seek(at)
                file.write(changed)
        verdict = bench.verdict(name)
        verdicts[verdict] += 1
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data[at:] if changed is None else data[at:at + len(changed)])
        if verdict not in ("named", "harmless", "named by verify"):
            raise Failure(f"{name}, {what}: {verdict}")
    return verdicts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--places", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bundle")
        bundle = compile_into(path, args.source, "--max-context", str(CONTEXT), "--max-sequences", str(SEQUENCES),
                              "--step-tokens", str(STEP))
        prompts = random_prompts(bundle.manifest["model"]["vocab"])
        check_coverage(bundle, prompts)
        batch = os.path.join(folder, "prompts.json")
        with open(batch, "w") as file:
            json.dump(prompts, file)
        bench = Bench(path, batch)
        if any(done.returncode for done in bench.expected):
            raise Failure(f"the sound bundle does not run: {bench.expected[0].stderr}{bench.expected[1].stderr}")
        total = collections.Counter()
        for root, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                file = os.path.join(root, name)
                name = os.path.relpath(file, path)
                if os.path.getsize(file):
                    verdicts = damage(bench, file, name, args.places, random.Random(f"{args.seed} {name}"))
                    print(f"{name}: {listed(verdicts)}")
                    total += verdicts
        if bench.verdict("") != "harmless":
            raise Failure("the mended bundle is not what it was")
        print(f"{sum(total.values())} damages: {listed(total)}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
