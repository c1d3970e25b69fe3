"""check_invariance.py CHECKPOINT [--context N] [--each] [k2c compile options]: company and schedule change no bit (N0).

The reference is every logit of one prompt, read alone on one thread, token by token. The same bits must come from the
prompt and its beginnings read whole, from other chunks and threads, beside 63 other prompts, and from a bundle compiled
with other tiles, limits, target and without the optional passes; generated tokens likewise. The trace must show that
the runs took different variants of each kernel. Equal means equal bytes.

--context N   a prompt of N tokens: the checkpoint is copied and its max_position_embeddings raised where it is less
--each        one bundle for each compile option that may change no bit, instead of one bundle for all of them
"""
import argparse
import json
import math
import os
import re
import sys
import tempfile

from bundles import Failure, compiled, form
from golden import Report

OTHER_OPTIONS = [
    ("--step-tokens", "200", "--max-sequences", "64"),
    ("--tile-choice", "3"),
    ("--tile-choice", "5"),
    ("--without", "fusion"),
    ("--without", "launch-groups"),
    ("--without", "buffer-reuse"),
    ("--without", "prefetch-weights"),
    ("--target", "x86-64-v3"),
]
CHUNKS = (2, 7, 16)
NEW_TOKENS = 6


def draw(count, vocab, seed):
    """Token ids of a linear congruential generator: the same everywhere, for ever."""
    ids = []
    for _ in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        ids.append((seed >> 33) % vocab)
    return ids


def company(ids, vocab, context):
    """64 prompts of many lengths; `ids` is one of them, and one prompt begins as it does."""
    prompts = [draw(1 + i * 37 % min(97, context), vocab, i) for i in range(64)]
    prompts[41] = ids
    prompts[7] = ids[: len(ids) // 2] + draw(3, vocab, 7)
    return prompts


def raised(source, context):
    """The checkpoint, or a copy of it (of links) whose config allows `context` positions."""
    with open(os.path.join(source, "config.json")) as file:
        config = json.load(file)
    if config["max_position_embeddings"] >= context:
        return source
    top = os.environ.get("K2C_TEST_BUNDLES") or tempfile.gettempdir()
    folder = os.path.join(top, "checkpoints", f"{os.path.basename(os.path.realpath(source))}-{context}")
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(source):
        if name.endswith(".safetensors") or name.endswith(".index.json"):
            link = os.path.join(folder, name)
            if not os.path.lexists(link):
                os.symlink(os.path.realpath(os.path.join(source, name)), link)
    text = json.dumps(dict(config, max_position_embeddings=context), indent=2)
    path = os.path.join(folder, "config.json")
    if not os.path.exists(path):
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)
    return folder


def tile_rows(source, *options):
    """Kernel -> the rows of its tile."""
    text = form(source, "scheduled", *options)
    return {name: int(rows) for name, rows in re.findall(r"kern\.func @(\w+)\(.*tile<.*?\bmr = (\d+)", text)}


class Suite:
    def __init__(self, report, bundle, count, rows_of):
        self.report, self.bundle, self.rows_of = report, bundle, rows_of
        self.vocab = bundle.manifest["model"]["vocab"]
        self.ids = draw(count, self.vocab, 12345)
        self.rows, self.single = traced(bundle, self.ids, "--all", "--threads", 1, "--chunk", 1)
        finite = all(math.isfinite(x) for row in self.rows for x in row)
        different = len({row.tobytes() for row in self.rows}) == len(self.rows) == count
        report.check(finite and different, f"{count} rows of numbers, all different")
        self.tokens = self.generated(bundle)

    def is_expanded(self, prompt):
        """The segment form of a prompt of so many tokens (N4); without two forms, never."""
        first = self.bundle.manifest["forms"]["prompt_expanded_at_least"]
        return 0 <= first <= prompt

    def generated(self, bundle, *arguments):
        """The tokens after the first half of the prompt, and the bits of their log-probabilities."""
        done = bundle.generate(self.ids[: len(self.ids) // 2], NEW_TOKENS, "--logprobs", 4, *arguments)
        return done["ids"], json.dumps(done["logprobs"])

    def same(self, rows, what):
        differ = [i for i, (row, want) in enumerate(zip(rows, self.rows)) if row.tobytes() != want.tobytes()]
        detail = f": rows {differ[:8]} of {len(rows)} differ" if differ else ""
        self.report.check(not differ and len(rows) == len(self.rows), what + detail)

    def same_at(self, length, rows, what):
        """Logits after the first `length` tokens alone."""
        self.report.check([row.tobytes() for row in rows] == [self.rows[length - 1].tobytes()], what)

    def whole(self):
        """Prompts that are one step each, around the borders of tiles, blocks and pages."""
        borders = {1, 2, 13, 16, 63, 64, 65, 128, 129, 1024, 1025, len(self.ids)}
        form = self.is_expanded(len(self.ids))
        lengths = [n for n in sorted(borders) if n <= len(self.ids) and self.is_expanded(n) == form]
        for length in lengths[:-1]:
            self.same_at(length, self.bundle.logits(self.ids[:length]), f"{length} tokens, whole")
        last, seen = traced(self.bundle, self.ids, "--threads", 1)
        self.same_at(len(self.ids), last, f"{len(self.ids)} tokens, whole")
        return seen

    def chunks(self):
        """Chunks of a prompt; each linear must have run as one row, as a few and as full tiles."""
        runs = [self.single, self.whole()]
        for chunk in CHUNKS:
            rows, seen = traced(self.bundle, self.ids, "--all", "--threads", 1, "--chunk", chunk)
            self.same(rows, f"chunk {chunk}")
            runs.append(seen)
        for kernel, alone in self.single.items():
            ran = [run[kernel] for run in runs]
            if alone != {"all"}:
                self.report.equal(alone, {"m1"}, f"{kernel}: variants of chunk 1")
                # Between one row and a full tile of two there is nothing.
                variants = {"m1", "full"} | ({"tail"} if self.rows_of[kernel] > 2 else set())
                self.report.equal(set().union(*ran), variants, f"{kernel}: variants of all runs")

    def threads(self):
        for threads in (2, 3):
            self.same(self.bundle.logits(self.ids, "--all", "--threads", threads), f"{threads} threads")
            with tempfile.NamedTemporaryFile(suffix=".trace") as trace:
                last = self.bundle.logits(self.ids, "--threads", threads, "--trace", trace.name)
                ran = {event["args"]["worker"] for event in events(trace.name)}
            self.same_at(len(self.ids), last, f"{threads} threads, whole")
            self.report.equal(ran, set(range(threads)), f"{threads} threads: workers that ran")

    def beside_others(self, bundle, name):
        prompts = company(self.ids, self.vocab, len(self.ids))
        for arguments in ((), ("--chunk", 5)):
            rows = bundle.batch_logits(prompts, *arguments)
            self.same_at(len(self.ids), rows[41], f"{name}: one of 64 sequences {' '.join(map(str, arguments))}")
            # What the others compute must not depend on the company either: three of them alone.
            for i in (0, 7, 63):
                alone = bundle.logits(prompts[i])[0]
                self.report.check(alone.tobytes() == rows[i][0].tobytes(), f"{name}: sequence {i} of 64, and alone")

    def generating(self, bundle, name):
        self.report.equal(self.generated(bundle), self.tokens, f"{name}: tokens and their log-probabilities")
        self.report.equal(self.generated(bundle, "--chunk", 7), self.tokens, f"{name}: the same with chunk 7")

    def reading_back(self):
        """Where prompts have the form of generated tokens, generating equals reading."""
        half = self.ids[: len(self.ids) // 2]
        if self.bundle.manifest["numerics"]["mla"] == "phased" and self.is_expanded(len(half) + NEW_TOKENS):
            return
        read = self.bundle.generate(half + self.tokens[0][:-1], 1, "--logprobs", 4)
        self.report.equal(read["ids"], self.tokens[0][-1:], "last generated token, its past read as a prompt")
        self.report.equal(
            json.dumps(read["logprobs"]), json.dumps(json.loads(self.tokens[1])[-1:]), "its log-probabilities, likewise"
        )

    def other(self, bundle, name):
        """The program compiled another way: whole, and in chunks."""
        self.same_at(len(self.ids), bundle.logits(self.ids), f"{name}, whole")
        self.same(bundle.logits(self.ids, "--all"), name)
        self.same(bundle.logits(self.ids, "--all", "--chunk", 5), f"{name}, chunk 5")
        self.generating(bundle, name)


def events(path):
    with open(path) as file:
        trace = json.load(file)
    return [e for e in trace["traceEvents"] if "variant" in e.get("args", {})]


def traced(bundle, ids, *arguments):
    """Logits, and kernel -> the variants that computed them."""
    with tempfile.NamedTemporaryFile(suffix=".trace") as trace:
        rows = bundle.logits(ids, *arguments, "--trace", trace.name)
        seen = {}
        for event in events(trace.name):
            seen.setdefault(event["name"], set()).add(event["args"]["variant"])
    return rows, seen


def check(source, options, context, each):
    report = Report(f"bits of {source} {' '.join(options)}")
    limits = ["--max-context", str(context)] if context else []
    source = raised(source, context) if context else source
    bundle = compiled(source, *options, *limits)
    count = context or min(bundle.manifest["limits"]["max_context"] - 2, 150)
    suite = Suite(report, bundle, count, tile_rows(source, *options, *limits))
    suite.chunks()
    suite.threads()
    suite.beside_others(bundle, "default bundle")
    suite.generating(bundle, "default bundle")
    suite.reading_back()
    several = OTHER_OPTIONS if each else [sum((one for one in OTHER_OPTIONS if one[1] != "5"), ())]
    for one in several:
        other = compiled(source, *options, *limits, *one)
        suite.other(other, " ".join(one))
        if "--max-sequences" in one:
            suite.beside_others(other, " ".join(one))
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--each", action="store_true")
    known, rest = parser.parse_known_args()
    try:
        sys.exit(check(known.checkpoint, rest, known.context, known.each))
    except Failure as failure:
        sys.exit(f"check_invariance.py: {failure}")
