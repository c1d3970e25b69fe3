"""check_gpu.py CHECKPOINT [--prompts N] [k2c compile options]: a program of a GPU computes what that of the CPU does.

Both are compiled of the same checkpoint; the GPU's kernels are executed as PTX by the emulated driver. Greedy tokens of
the first N prompts of the golden results are those (with --compute bf16 the CPU's), and every logit has the CPU's bits:
of prompts read whole and in chunks, of all of them in one batch, under several orders of the driver's own.
"""
import argparse
import sys

from bundles import Failure, compiled
from golden import Golden, Report

CHUNKS = ((), ("--chunk", 7), ("--chunk", 1))


def check(source, prompts, options):
    report = Report(f"a GPU's program of {source} {' '.join(options)}")
    gpu, cpu = compiled(source, "--topology", "h200x1", *options), compiled(source, "--topology", "cpu1", *options)
    golden = Golden(source)
    for number, prompt in enumerate(golden.prompts[:prompts]):
        name, ids = prompt["name"], prompt["ids"]
        seed = ("--emulate-seed", number + 1)
        count = golden.document["new_tokens"]
        tokens = cpu.generate(ids, count)["ids"] if "bf16" in options else prompt["greedy"]["ids"]
        report.equal(gpu.generate(ids, count, *seed)["ids"], tokens, f"{name}: greedy tokens")
        chunk = CHUNKS[number % len(CHUNKS)]
        want = cpu.logits(ids, "--all")
        report.check(gpu.logits(ids, "--all", *chunk, *seed) == want, f"{name}: bits of logits, {chunk or 'whole'}")
    batch = golden.batch["ids"]
    report.check(gpu.batch_logits(batch, "--emulate-seed", 9) == cpu.batch_logits(batch), "bits of logits of a batch")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--prompts", type=int, default=100)
    arguments, others = parser.parse_known_args()
    try:
        sys.exit(check(arguments.source, arguments.prompts, others))
    except Failure as failure:
        sys.exit(f"check_gpu.py: {failure}")
