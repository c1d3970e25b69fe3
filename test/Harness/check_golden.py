"""check_golden.py CHECKPOINT [k2c compile options]: the compiled program computes the golden results beside it.

Tokens, experts and their order are equal; logits, hidden states and router weights within the bounds below. The golden
results are float32 sums in another order, so neither side is right to the last bit. Logits are therefore compared with
the reference in float64: over all positions of the checkpoint, the largest error and the root mean square of the errors
are at most 4 times those of the reference's own float32. The order of two experts is not compared where their weights
differ by less than the bound.
"""
import sys

from bundles import Failure, compiled, rows
from golden import OWN_ERRORS, Golden, Precision, Report, distance, root_mean_square, scale

WEIGHT_BOUND = 1e-5  # absolute; router weights are at most the routed scaling factor
HIDDEN_BOUND = 2e-5  # of the largest value of the layer's states


class LogitErrors:
    """Errors against float64, of the program and of the reference's float32: every logit of a checkpoint."""

    def __init__(self):
        self.mine, self.own = [], []

    def add(self, got, exact, own):
        """Rows of the program, of the reference in float32, and what its float64 is more than that."""
        distance(got, exact)  # of one shape
        for row, want, more in zip(got, exact, own):
            self.mine.extend(x - (y + z) for x, y, z in zip(row, want, more))
            self.own.extend(more)

    def check(self, report):
        for of, name in ((root_mean_square, "root mean square"), (lambda e: max(map(abs, e)), "largest")):
            mine, own = of(self.mine), of(self.own)
            report.within(mine, OWN_ERRORS * own, f"error of {len(self.mine)} logits against float64, {name}")


def sorted_routes(experts, weights):
    return sorted(zip(experts, weights))


def check_routes(report, bundle, prompt):
    if not prompt.get("routes"):
        return
    got = bundle.json("routes", "--prompt-ids", ",".join(map(str, prompt["ids"])))["layers"]
    report.equal(sorted(got), sorted(prompt["routes"]), f"{prompt['name']}: layers that route")
    worst, sets, falling = 0.0, True, True
    for layer, want in prompt["routes"].items():
        for token, experts in enumerate(want["experts"]):
            mine = sorted_routes(got[layer]["experts"][token], got[layer]["weights"][token])
            theirs = sorted_routes(experts, want["weights"][token])
            sets &= [e for e, _ in mine] == [e for e, _ in theirs]
            worst = max([worst, *(abs(a - b) for (_, a), (_, b) in zip(mine, theirs))])
            weights = got[layer]["weights"][token]
            falling &= all(a >= b for a, b in zip(weights, weights[1:]))
    report.check(sets, f"{prompt['name']}: experts of every token and layer")
    report.check(falling, f"{prompt['name']}: experts are listed by falling weight")
    report.within(worst, WEIGHT_BOUND, f"{prompt['name']}: router weights")


def check_hidden(report, bundle, golden):
    prompt = next(p for p in golden.prompts if p["name"] == "len7")
    layers = bundle.json("hidden", "--prompt-ids", ",".join(map(str, prompt["ids"])))["layers"]
    prefix = "len7.hidden."
    names = [name for name in golden.tensors if name.startswith(prefix)]
    last = max((int(name.split("layer")[-1]) for name in names if "layer" in name), default=-1)
    for name in sorted(names):
        key = name[len(prefix) :].replace("layer", "")
        want = golden.rows(name)
        report.within(distance(rows(layers[key]), want) / scale(want), HIDDEN_BOUND, f"len7: hidden states, {key}")
    report.check(last + 2 == len(layers) == len(names), f"len7: {len(layers)} hidden states for {len(names)}")


def check_bundle(report, source, bundle):
    """Runs every prompt of the golden results beside `source`."""
    golden, precision = Golden(source), Precision(source)
    count, errors = golden.document["new_tokens"], LogitErrors()
    for prompt in golden.prompts:
        name, ids = prompt["name"], prompt["ids"]
        done = bundle.generate(ids, count)
        report.equal(done["ids"], prompt["greedy"]["ids"], f"{name}: {count} greedy tokens")
        report.equal(done["finish"], "length", f"{name}: finish")
        every = bundle.logits(ids, "--all")
        report.equal(len(every), len(ids), f"{name}: rows of logits")
        some = [every[position] for position in precision.positions(name)]
        errors.add(some, precision.rows(f"{name}.float32"), precision.rows(f"{name}.own"))
        check_routes(report, bundle, prompt)
    check_hidden(report, bundle, golden)
    batch = [row for sequence in bundle.batch_logits(golden.batch["ids"]) for row in sequence]
    errors.add(batch, precision.rows("batch.float32"), precision.rows("batch.own"))
    errors.check(report)


def check(source, options):
    report = Report(f"golden results of {source} {' '.join(options)}")
    check_bundle(report, source, compiled(source, *options))
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2:]))
    except Failure as failure:
        sys.exit(f"check_golden.py: {failure}")
