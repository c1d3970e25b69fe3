"""check_poison.py CHECKPOINT POISON.so [k2c compile options]: no result depends on memory nobody wrote.

Fresh memory of the system is zero; here heap, cache, arena, scratch, step arrays and logits begin as other bytes:
NaN, huge, and tiny numbers. Logits, hidden states, routes and tokens of prompts alone and together have the same
bits as from zeros.
"""
import json
import os
import sys
import tempfile

from bundles import Failure, compiled
from check_invariance import draw
from golden import Report

# Scratch and shares of several workers.
TEAM = ("--threads", 2)
PATTERNS = ("0xff", "0x7f", "0x01")


def outputs(bundle, prompts):
    """The printed results of each command: one text for one set of bits."""
    longest = ",".join(map(str, max(prompts, key=len)))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(prompts, file)
        file.flush()
        return {
            "logits": bundle.text("logits", "--prompt-ids", longest, "--all", "--chunk", 9, "--json", *TEAM),
            "hidden states": bundle.text("hidden", "--prompt-ids", longest, "--json", *TEAM),
            "routes": bundle.text("routes", "--prompt-ids", longest, "--json", *TEAM),
            "a batch": bundle.text("logits", "--batch-file", file.name, "--json", *TEAM),
            "tokens": tokens(bundle, file.name),
        }


def tokens(bundle, batch):
    done = bundle.json("generate", "--batch-file", batch, "-n", 3, "--ignore-eos", "--logprobs", 3, *TEAM)
    return json.dumps([(one["ids"], one["logprobs"]) for one in done])


def check(source, library, options):
    report = Report(f"unwritten memory of {source} {' '.join(options)}")
    bundle = compiled(source, *options)
    limits, vocab = bundle.manifest["limits"], bundle.manifest["model"]["vocab"]
    most = min(limits["max_context"] - 3, 90)
    prompts = [draw(1 + i * 11 % most, vocab, i) for i in range(20)] + [draw(most, vocab, 99)]
    want = outputs(bundle, prompts)
    memory = bundle.manifest["memory"]
    with tempfile.NamedTemporaryFile("r") as poisoned:
        os.chdir(os.path.dirname(library))  # the loader takes a space in LD_PRELOAD for the end of a name
        os.environ.update(LD_PRELOAD="./" + os.path.basename(library), POISONED=poisoned.name)
        for pattern in PATTERNS:
            # The heap, too: MALLOC_PERTURB_ is the complement of the byte fresh memory gets.
            os.environ.update(POISON=pattern, MALLOC_PERTURB_=str(int(pattern, 16) ^ 0xFF or 1))
            got = outputs(bundle, prompts)
            for name in want:
                report.check(got[name] == want[name], f"memory of {pattern}: {name}")
            poisoned.seek(0)
            owned = memory["cache"] + memory["arena"] + memory["logits"] + memory["scratch_per_worker"]
            report.check(int(poisoned.read()) >= owned, f"memory of {pattern}: at least {owned} bytes were poisoned")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2], sys.argv[3:]))
    except Failure as failure:
        sys.exit(f"check_poison.py: {failure}")
