"""check_bf16.py CHECKPOINT [--reference-error X] [k2c compile options]: bf16 is as near to float32 as the reference's.

The reference has run in float32 and in bfloat16 (precision.json, precision.safetensors). Under the float32 routes on
both sides, the error of --compute bf16 against the reference's float32 logits is at most 1.5 times that of the
reference's bfloat16 (root mean square over the vocabulary and all positions), and at most 2.5 times at any position.
Tokens are equal where the float32 margin allows: where it is more than twice the reference's largest error there, so
that the reference's bfloat16 cannot have another. With free routes, at most as many choices of experts differ from
float32 as differ in the reference's bfloat16, plus one of a hundred.

--reference-error X   takes the reference's errors X times: a bound that is too narrow must fail
"""
import argparse
import math
import sys

from bundles import Failure, compiled, json_file
from golden import Golden, Precision, Report, best, margin, root_mean_square

OVERALL, ANYWHERE = 1.5, 2.5  # times the error of the reference's bfloat16
MORE_CHOICES = 0.01  # of all choices, beside those that differ in the reference's bfloat16


class Errors:
    """Sums over the positions of a checkpoint."""

    def __init__(self, factor):
        self.factor, self.mine, self.theirs, self.places = factor, [], [], []
        self.tokens = self.allowed = 0

    def add(self, place, got, exact, half):
        """One position: logits of the program, of the reference in float32 and in bfloat16."""
        difference = [x - y for x, y in zip(got, exact)]
        reference = [self.factor * (x - y) for x, y in zip(half, exact)]
        self.places.append(place)
        self.mine.append(root_mean_square(difference))
        self.theirs.append(root_mean_square(reference))
        if margin(exact) > 2 * max(map(abs, reference)):
            self.allowed += 1
            self.tokens += best(got) == best(exact)

    def ratio(self):
        return root_mean_square(self.mine) / root_mean_square(self.theirs)

    def worst(self):
        """The largest ratio of one position, and where."""
        return max((mine / theirs, place) for mine, theirs, place in zip(self.mine, self.theirs, self.places))


def forced_logits(bundle, prompt):
    """The logits of every position of a prompt, under its float32 routes."""
    with json_file({"layers": prompt["routes"]}) as file:
        forced = ("--routes", file) if prompt["routes"] else ()
        return bundle.logits(prompt["ids"], "--all", *forced)


def choices_that_differ(bundle, prompt):
    """How many experts of the program's own routes are not those of float32."""
    got = bundle.json("routes", "--prompt-ids", ",".join(map(str, prompt["ids"])))["layers"]
    return sum(len(set(mine) - set(want)) for layer, routes in prompt["routes"].items()
               for mine, want in zip(got[layer]["experts"], routes["experts"], strict=True))


def check(source, factor, options):
    report = Report(f"bf16 of {source} {' '.join(options)}")
    golden, precision = Golden(source), Precision(source)
    bundle = compiled(source, "--compute", "bf16", *options)
    errors, differ = Errors(factor), 0
    for prompt in golden.prompts:
        name = prompt["name"]
        rows, positions = forced_logits(bundle, prompt), precision.positions(name)
        report.equal(len(rows), len(prompt["ids"]), f"{name}: rows of logits")
        exact, half = precision.rows(f"{name}.float32"), precision.rows(f"{name}.bfloat16")
        for position, want, reference in zip(positions, exact, half, strict=True):
            errors.add(f"{name}, position {position}", rows[position], want, reference)
        if prompt["routes"]:
            differ += choices_that_differ(bundle, prompt)
    count = len(errors.mine)
    report.within(errors.ratio(), OVERALL, f"error over {count} positions, times that of the reference's bfloat16")
    worst, place = errors.worst()
    report.within(worst, ANYWHERE, f"the same at the worst position ({place})")
    report.equal(errors.tokens, errors.allowed, f"tokens of {errors.allowed} positions whose margin allows no other")
    report.check(errors.allowed > 0, "some margin is that wide")
    theirs, choices = precision.different_choices()
    if choices:
        report.within(differ, math.floor(factor * theirs + MORE_CHOICES * choices),
                      f"choices of {choices} that differ from float32 ({theirs} in the reference's bfloat16)")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--reference-error", type=float, default=1.0)
    arguments, options = parser.parse_known_args()
    try:
        sys.exit(check(arguments.source, arguments.reference_error, options))
    except Failure as failure:
        sys.exit(f"check_bf16.py: {failure}")
