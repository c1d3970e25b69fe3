"""check_text.py CHECKPOINT [k2c compile options]: text prompts through the tokenizer give the golden tokens and text.

golden.json beside the checkpoint lists, for each prompt, its text, its token ids (the tokenizer's own template
included), the best logits after it and the greedy continuation as ids and as text.
"""
import sys

from bundles import Failure, compiled
from golden import Golden, Report

TOP_BOUND = 2e-4  # absolute, beside the five decimals the golden file keeps


def check_best(report, row, prompt):
    want = prompt["last"]
    order = sorted(range(len(row)), key=lambda i: -row[i])[: len(want["top_ids"])]
    report.equal(order, want["top_ids"], f"{prompt['name']}: best tokens")
    worst = max(abs(row[i] - x) for i, x in zip(want["top_ids"], want["top_values"]))
    report.within(worst, TOP_BOUND + 5e-6, f"{prompt['name']}: best logits")


def check(source, options):
    report = Report(f"text of {source} {' '.join(options)}")
    golden, bundle = Golden(source), compiled(source, *options)
    count = golden.document["new_tokens"]
    for prompt in golden.prompts:
        arguments = ("generate", "--prompt", prompt["text"], "-n", count, "--ignore-eos")
        done = bundle.json(*arguments)
        report.equal(done["prompt_ids"], prompt["ids"], f"{prompt['name']}: prompt ids")
        report.equal(done["ids"], prompt["greedy"]["ids"], f"{prompt['name']}: {count} greedy tokens")
        report.equal(done["text"], prompt["greedy"]["text"], f"{prompt['name']}: text")
        streamed, expected = bundle.text(*arguments).rstrip("\n"), prompt["greedy"]["text"].rstrip("\n")
        report.equal(streamed, expected, f"{prompt['name']}: streamed text")
        check_best(report, bundle.logits(prompt["ids"])[0], prompt)
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2:]))
    except Failure as failure:
        sys.exit(f"check_text.py: {failure}")
