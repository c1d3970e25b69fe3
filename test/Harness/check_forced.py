"""check_forced.py CHECKPOINT [k2c compile options]: routes are forced on the tokens they were printed for.

The routes of a prompt are turned by one token, so that no position has its own, and forced on the prompt read whole.
Chunks of any size, in which a row of the step is not a position of the prompt, must give the same logits and hidden
states, bit by bit; the prompt's own routes those of the router.
"""
import sys

from bundles import Failure, compiled, json_file
from check_invariance import draw
from golden import Report

TOKENS = 41
CHUNKS = (1, 7, 16, 40)


def turned(routes):
    """The routes of the token before; the first has those of the last."""
    return {"layers": {key: {name: rows[-1:] + rows[:-1] for name, rows in layer.items()}
                       for key, layer in routes["layers"].items()}}


def check(source, options):
    report = Report(f"forced routes of {source} {' '.join(options)}")
    bundle = compiled(source, *options)
    ids = ",".join(map(str, draw(TOKENS, bundle.manifest["model"]["vocab"], 31)))

    def printed(routes, *arguments):
        with json_file(routes) as file:
            forced = ("--routes", file) if routes else ()
            return [bundle.text(*command, "--prompt-ids", ids, "--json", *forced, *arguments)
                    for command in (("logits", "--all"), ("hidden",))]

    own = bundle.json("routes", "--prompt-ids", ids)
    other = turned(own)
    free, whole = printed(None), printed(other)
    report.check(printed(own) == free, "its own routes, forced")
    report.check(printed(own, "--chunk", 7) == free, "its own routes, forced in chunks of 7")
    report.check(whole[0] != free[0] and whole[1] != free[1], "the routes of its neighbours change the results")
    for chunk in CHUNKS:
        report.check(printed(other, "--chunk", chunk) == whole, f"the routes of its neighbours, chunk {chunk}")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2:]))
    except Failure as failure:
        sys.exit(f"check_forced.py: {failure}")
