"""check_split.py CHECKPOINT TOPOLOGIES --lengths N,N [--every N] [k2c compile options]: who computes which partial of a
long sequence changes no bit (N3).

A program for eight cores cuts sequences of more than 2,048 tokens into partials, in steps of few tokens, which workers
share; one for a single core never does, as its IR shows. TOPOLOGIES is the folder of both descriptions. The reference
is the program for one core with one worker; the other must give the same bits with 1, 2, 3 and 8 workers: the logits
after each length, the last row of the prompt, or the last rows, being a step of their own that the trace shows to be
split; and the tokens that three sequences of unequal length generate together, with their log-probabilities. The arena
must be what buffers take and the partials of the largest split step.

--lengths N,N   tokens of the prompts
--every N       also the logits of every position of a prompt of N tokens, read in split steps from its first token on
"""
import argparse
import os
import re
import sys
import tempfile

from bundles import Failure, compiled, form, json_file
from check_invariance import draw, events, raised
from golden import Report

CONTEXT = 4608
THREADS = (1, 2, 3, 8)
FIRST_SPLIT = 2049  # tokens: a third partial begins


class Form:
    """What the scheduled form says of the arena, and of its attention kernels."""

    def __init__(self, text):
        self.arena, self.buffers = (
            int(re.search(pattern, text).group(1))
            for pattern in (r"module .*?mem\.peak = (\d+)", r"func\.func @step\(.*?mem\.peak = (\d+)")
        )
        self.split_tokens, self.partials = {}, 0
        kernels = r"kern\.func @(attention\w*)\(.*-> tensor<\?x(\d+)x(\d+)x.*\btile<([^>]*)>"
        for name, heads, width, tile in re.findall(kernels, text):
            split = re.search(r"split_tokens = (\d+)", tile)
            self.split_tokens[name] = tokens = int(split.group(1)) if split else 0
            stride = (int(width) + 2 + 15) // 16 * 16  # the output's columns, maximum and sum, to a cache line
            self.partials += tokens * int(heads) * 16 * stride * 4


def launches(path, kernels):
    """Rows of a step -> launches of attention kernels in it: the last worker has a share of every launch."""
    seen = [event for event in events(path) if event["name"] in kernels]
    last = max(event["args"]["worker"] for event in seen)
    found = {}
    for event in seen:
        if event["args"]["worker"] == last:
            rows = event["args"]["rows"]
            found[rows] = found.get(rows, 0) + 1
    return found


class Suite:
    def __init__(self, report, source, topologies, options):
        self.report = report
        self.compile = [raised(source, CONTEXT), *options, "--max-context", str(CONTEXT), "--step-tokens", str(CONTEXT)]
        many, one = (["--topology", os.path.join(topologies, name)] for name in ("eight-cores.yaml", "one-core.yaml"))
        self.split, self.whole = compiled(*self.compile, *many), compiled(*self.compile, *one)
        cut, never = (Form(form(self.compile[0], "scheduled", *self.compile[1:], *cores)) for cores in (many, one))
        self.kernels, self.most = cut.split_tokens, max(cut.split_tokens.values())
        report.check(self.most > 0, f"eight cores split steps of up to {self.most} tokens")
        report.equal(set(never.split_tokens.values()), {0}, "one core splits none")
        both = cut.buffers + cut.partials
        report.equal(cut.arena, both, f"mem.peak: {cut.buffers} bytes of buffers and {cut.partials} of partials")
        report.equal(self.split.manifest["memory"]["arena"], both, "the arena of the manifest")
        report.equal(never.arena, never.buffers, "the arena of one core has no partials")
        self.vocab = self.split.manifest["model"]["vocab"]
        self.ids = draw(CONTEXT, self.vocab, 777)

    def last_rows(self, length):
        """Logits after `length` tokens, whose last 1, or most, are a step of their own."""
        want = self.whole.logits(self.ids[:length], "--threads", 1)[0].tobytes()
        for rows in sorted({1, self.most}):
            for threads in THREADS:
                with tempfile.NamedTemporaryFile(suffix=".trace") as trace:
                    arguments = ("--chunk", length - rows, "--threads", threads, "--trace", trace.name)
                    got = self.split.logits(self.ids[:length], *arguments)[0].tobytes()
                    ran = launches(trace.name, self.kernels)
                name = f"{length} tokens, the last {rows} split, {threads} threads"
                self.report.check(got == want, name)
                self.report.equal(ran[rows], 2 * ran[length - rows], f"{name}: launches of attention")

    def generating(self, length):
        """Three sequences in a step, or as many as a split step has: two that are split, of which one may have a
        partial more, and one that is not."""
        prompts = [self.ids[:length], self.ids[100:800], self.ids[1:length]][: self.most]
        with json_file(prompts) as file:
            arguments = ("generate", "--batch-file", file, "-n", 5, "--ignore-eos", "--logprobs", 4)
            want, *several = (
                [(one["ids"], one["logprobs"]) for one in bundle.json(*arguments, "--threads", threads)]
                for bundle, threads in [(self.whole, 1), *((self.split, threads) for threads in THREADS)]
            )
        for threads, got in zip(THREADS, several):
            self.report.check(got == want, f"sequences of {[len(p) for p in prompts]} tokens, {threads} threads")

    def every_row(self, length):
        """The logits of every position of a prompt that is read in split steps only."""
        want = self.whole.logits(self.ids[:length], "--all", "--threads", 1)
        got = self.split.logits(self.ids[:length], "--all", "--chunk", self.most, "--threads", 2)
        differ = [i for i in range(length) if got[i].tobytes() != want[i].tobytes()]
        self.report.equal(differ, [], f"{length} tokens in steps of {self.most}: rows that differ")


def check(source, topologies, lengths, every, options):
    report = Report(f"split sequences of {source} {' '.join(options)}")
    suite = Suite(report, source, topologies, options)
    report.check(max(lengths) >= FIRST_SPLIT, "a prompt has three partials")
    for length in lengths:
        suite.last_rows(length)
    suite.generating(max(lengths))
    if every:
        suite.every_row(every)
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("topologies")
    parser.add_argument("--lengths", type=lambda text: [int(n) for n in text.split(",")], required=True)
    parser.add_argument("--every", type=int, default=0)
    known, rest = parser.parse_known_args()
    try:
        sys.exit(check(known.checkpoint, known.topologies, known.lengths, known.every, rest))
    except Failure as failure:
        sys.exit(f"check_split.py: {failure}")
