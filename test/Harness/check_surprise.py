"""check_surprise.py CHECKPOINT [--text FILE] [k2c compile options]: perplexity is what the logits say.

`run perplexity` against -log softmax computed here, in doubles, from `run logits --all`: of lists of ids, some longer
than max_context, which are read in windows; with --text, of a text, too. nll is within 2^-22 (nll + 2): the runtime
computes a token's log-probability in float32, with an error of at most 2^-24 (1 + 3 nll), and the sum of exp under it
has a relative error of 2^-23. ppl is exp(nll); other chunks and threads change nothing.
"""
import argparse
import math
import sys

from bundles import Failure, compiled, json_file
from check_invariance import draw
from golden import Report


def surprise(row, token):
    """-log of the probability of `token` under these logits."""
    highest = max(row)
    return highest - row[token] + math.log(math.fsum(math.exp(x - highest) for x in row))


def expected(bundle, texts):
    """The number of predicted tokens and their mean surprise."""
    window = bundle.manifest["limits"]["max_context"]
    windows = [ids[begin : begin + window] for ids in texts for begin in range(0, len(ids), window)]
    found = [surprise(row, after) for ids, table in zip(windows, bundle.batch_logits(windows, "--all"))
             for row, after in zip(table, ids[1:])]
    return len(found), math.fsum(found) / len(found)


def compare(report, bundle, path, texts, what):
    count, nll = expected(bundle, texts)
    got = bundle.json("perplexity", path)
    report.equal(got["tokens"], count, f"{what}: tokens")
    report.within(abs(got["nll"] - nll), 2.0**-22 * (nll + 2), f"{what}: nll {got['nll']:.9g}, distance")
    report.within(abs(got["ppl"] / math.exp(got["nll"]) - 1), 1e-14, f"{what}: ppl {got['ppl']:.9g}, relative distance")
    report.equal(bundle.json("perplexity", path, "--chunk", 3, "--threads", 3), got, f"{what}: in chunks, 3 threads")


def check(source, text, options):
    report = Report(f"perplexity of {source}")
    bundle = compiled(source, *options)
    vocab, context = bundle.manifest["model"]["vocab"], bundle.manifest["limits"]["max_context"]
    lists = [draw(2, vocab, 1), draw(40, vocab, 2), draw(2 * context + 5, vocab, 3), draw(context + 1, vocab, 4)]
    with json_file(lists) as file:
        compare(report, bundle, file, lists, "ids")
    if text:
        with open(text, encoding="utf8") as file:
            ids = bundle.json("generate", "--prompt", file.read(), "-n", 1)["prompt_ids"]
        compare(report, bundle, text, [ids], "text")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--text")
    known, others = parser.parse_known_args()
    try:
        sys.exit(check(known.source, known.text, others))
    except Failure as failure:
        sys.exit(f"check_surprise.py: {failure}")
