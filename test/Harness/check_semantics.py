"""check_semantics.py CHECKPOINT --before "OPTIONS" --after "OPTIONS" [--epsilons C] [--form F]: two
programs, one function.

The program compiled with the options before and after a rewrite: logits, hidden states of every layer and routes
over a prompt have the same bits. With --epsilons they differ (or the rewrite did not happen) by at most C * 2^-23
of the largest value of their kind, under the same routes. Either way the two scheduled forms (or
those that --form names) must be different text.
"""
import argparse
import sys
import tempfile

from bundles import Failure, compiled, form, rows
from check_invariance import draw
from golden import Report, distance, scale

EPSILON = 2.0**-23


def results(bundle, ids, routes):
    """What a program computes for a prompt, by name, as lists of rows."""
    prompt = ",".join(map(str, ids))
    forced = ("--routes", routes) if routes else ()
    hidden = bundle.json("hidden", "--prompt-ids", prompt, *forced)["layers"]
    found = {f"hidden states, {layer}": rows(states) for layer, states in hidden.items()}
    return dict(found, logits=bundle.logits(ids, "--all", *forced))


def check(source, before, after, epsilons, where):
    report = Report(f"{source}: '{' '.join(before)}' and '{' '.join(after)}'")
    different = form(source, where, *before) != form(source, where, *after)
    report.check(different, f"the {where} forms are different")
    one, other = compiled(source, *before), compiled(source, *after)
    ids = draw(min(one.manifest["limits"]["max_context"], 90), one.manifest["model"]["vocab"], 4711)
    routes = one.text("routes", "--prompt-ids", ",".join(map(str, ids)), "--json")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(routes)
        file.flush()
        forced = file.name if epsilons and one.manifest["model"]["moe_layers"] else None
        want, got = results(one, ids, forced), results(other, ids, forced)
    if not epsilons:
        same = other.text("routes", "--prompt-ids", ",".join(map(str, ids)), "--json") == routes
        report.check(same, "routes: same bits")
    for name in want:
        same = [a.tobytes() for a in want[name]] == [b.tobytes() for b in got[name]]
        if epsilons:
            units = distance(got[name], want[name]) / scale(want[name]) / EPSILON
            report.within(units, epsilons, f"{name}: difference in units of 2^-23 of the largest value")
        else:
            report.check(same, f"{name}: same bits")
    if epsilons:
        report.check(not same, "logits: not the same bits, so both ways were computed")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--before", default="")
    parser.add_argument("--after", required=True)
    parser.add_argument("--epsilons", type=float, default=0)
    parser.add_argument("--form", default="scheduled")
    known = parser.parse_args()
    try:
        sys.exit(check(known.checkpoint, known.before.split(), known.after.split(), known.epsilons, known.form))
    except Failure as failure:
        sys.exit(f"check_semantics.py: {failure}")
