"""check_perplexity.py MODEL GOLDEN TEXT: `run perplexity` of a text, in f32 and bf16, is the reference's.

GOLDEN is written by oracle/recipe/perplexity.py for one text: the mean of -log p over its tokens in float64, float32
and bfloat16, and the standard errors of the last two. In f32 a program is within 4 standard errors of the reference's
float32 of its float64; in bf16 within 4 of the reference's bfloat16 of its float32.
"""
import json
import math
import sys

from bundles import Failure, compiled, json_file
from golden import Report

STANDARD_ERRORS = 4


def check(model, golden, text):
    report = Report(f"perplexity of {text} by {model}")
    with open(golden) as file:
        want = json.load(file)
    for compute, own, exact in (("f32", "float32", "float64"), ("bf16", "bfloat16", "float32")):
        bundle = compiled(model, "--compute", compute)
        done = bundle.json("perplexity", text)
        report.equal(done["tokens"], len(want["ids"]) - 1, f"{compute}: predicted tokens")
        report.within(abs(done["nll"] - want["nll"][exact]), STANDARD_ERRORS * want["standard_error"][own],
                      f"{compute}: nll {done['nll']:.9g} beside {want['nll'][exact]:.9g} of {exact}")
        report.check(math.isclose(done["ppl"], math.exp(done["nll"]), rel_tol=1e-12), f"{compute}: ppl is exp(nll)")
        with json_file([want["ids"]]) as file:
            report.equal(bundle.json("perplexity", file), done, f"{compute}: the same of the token ids")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_perplexity.py: {failure}")
