"""check_gpu.py CHECKPOINT [--prompts N] [--every] [k2c compile options]: a program of a GPU computes what that of the
CPU does.

Both are compiled of the same checkpoint; the GPU's kernels are executed as PTX by the emulated driver. Greedy tokens of
the first N prompts of the golden results are those (with --compute bf16 the CPU's), and every logit has the CPU's bits:
of prompts read whole and in chunks, of all of them in one batch, under several orders of the driver's own. With --every
each prompt is read in all of these ways, and 64 beginnings of prompts share steps of a program with other limits.
"""
import argparse
import sys

from bundles import Failure, compiled
from golden import Golden, Report

CHUNKS = ((), ("--chunk", 7), ("--chunk", 1))
LIMITS = ("--step-tokens", "200", "--max-sequences", "64")


def check_many(report, gpu, cpu, prompts):
    """64 sequences, the longest of 12 tokens, under three orders."""
    many = [prompt["ids"][: 1 + i % 12] for i in range(64) for prompt in prompts[i % len(prompts) :][:1]]
    want = cpu.batch_logits(many)
    for seed in (1, 2, 3):
        got = gpu.batch_logits(many, "--emulate-seed", seed)
        report.check(got == want, f"bits of logits of 64 sequences within other limits, seed {seed}")


def check(source, prompts, is_every, options):
    report = Report(f"a GPU's program of {source} {' '.join(options)}")
    gpu, cpu = compiled(source, "--topology", "h200x1", *options), compiled(source, "--topology", "cpu1", *options)
    golden = Golden(source)
    for number, prompt in enumerate(golden.prompts[:prompts]):
        name, ids = prompt["name"], prompt["ids"]
        seed = ("--emulate-seed", number + 1)
        count = golden.document["new_tokens"]
        tokens = cpu.generate(ids, count)["ids"] if "bf16" in options else prompt["greedy"]["ids"]
        report.equal(gpu.generate(ids, count, *seed)["ids"], tokens, f"{name}: greedy tokens")
        want = cpu.logits(ids, "--all")
        for chunk in CHUNKS if is_every else CHUNKS[number % len(CHUNKS) :][:1]:
            report.check(gpu.logits(ids, "--all", *chunk, *seed) == want, f"{name}: bits of logits, {chunk or 'whole'}")
    routes = ("routes", "--prompt-ids", ",".join(map(str, golden.prompts[0]["ids"])))
    report.equal(gpu.json(*routes), cpu.json(*routes), "routes, of which a dense model has none")
    batch = golden.batch["ids"]
    report.check(gpu.batch_logits(batch, "--emulate-seed", 9) == cpu.batch_logits(batch), "bits of logits of a batch")
    if is_every:
        check_many(report, compiled(source, "--topology", "h200x1", *LIMITS, *options), cpu, golden.prompts)
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--every", action="store_true")
    arguments, others = parser.parse_known_args()
    try:
        sys.exit(check(arguments.source, arguments.prompts, arguments.every, others))
    except Failure as failure:
        sys.exit(f"check_gpu.py: {failure}")
