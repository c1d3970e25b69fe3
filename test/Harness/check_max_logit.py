"""check_max_logit.py CHECKPOINT [k2c compile options]: `run hidden --json` gives each head's largest attention logit.

It is a maximum over all pairs of a token and one before it, so it never falls as a prompt grows, a prompt of one token
has the product of its own query and key, and neither chunks nor threads change a bit of it.
"""
import sys

from bundles import Failure, compiled


def main(source, options):
    bundle = compiled(source, *options)
    ids = [token % bundle.manifest["model"]["vocab"] for token in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2)]

    def largest(count, *arguments):
        prompt = ",".join(map(str, ids[:count]))
        layers = bundle.json("hidden", "--prompt-ids", prompt, *arguments)["max_logits"]
        rows = [layers[str(layer)] for layer in range(bundle.manifest["model"]["layers"])]
        for row in rows:
            if len(row) != bundle.manifest["model"]["heads"] or not all(isinstance(x, float) for x in row):
                raise Failure(f"{source}: a layer's largest logits are {row}")
        return rows

    before = largest(1)
    for count in range(2, len(ids) + 1, 5):
        after = largest(count, "--chunk", 1)
        if any(b > a for x, y in zip(before, after) for b, a in zip(x, y)):
            raise Failure(f"{source}: a largest logit falls as the prompt grows to {count} tokens")
        before = after
    whole = largest(len(ids), "--threads", 2, "--chunk", 1)
    if whole != largest(len(ids), "--threads", 1, "--chunk", 5):
        raise Failure(f"{source}: the largest logits depend on chunks or threads")
    if whole == largest(1):
        raise Failure(f"{source}: a longer prompt has no larger logit anywhere, which no model does")


try:
    main(sys.argv[1], sys.argv[2:])
except Failure as failure:
    sys.exit(str(failure))
