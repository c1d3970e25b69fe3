"""check_poison.py CHECKPOINT POISON.so [k2c compile options]: no result depends on memory nobody wrote.

Fresh memory of the system is zero; here heap, cache, arena, scratch, step arrays and logits begin as other bytes:
NaN, infinite, huge, and tiny numbers; and before each step, all that it must not read becomes such bytes again
(poison.c): what lies behind the rows of the step, and behind the end of each sequence in its cache. Logits, hidden
states, routes and tokens of prompts alone and together have the same bits as from zeros; so have prompts that just fill
a page of the cache or begin the next, up to 1,025 tokens.
"""
import json
import os
import sys
import tempfile

from bundles import Failure, compiled, json_file
from check_invariance import draw, raised
from golden import Report

# Scratch and shares of several workers.
TEAM = ("--threads", 2)
WORDS = {"NaN": "ffffffff", "f32 infinity": "7f800000", "bf16 infinity": "7f80ff80", "huge": "7f7f7f7f",
         "tiny": "01010101"}
EDGES = [63, 129, 64, 1, 65, 62, 128, 127, 1023, 64, 1025, 63, 65, 1024]
CONTEXT = 1100
LIMITS = ["--step-tokens", "200", "--max-context", str(CONTEXT)]


def outputs(bundle):
    """The printed results of each command: one text for one set of bits."""
    vocab = bundle.manifest["model"]["vocab"]
    prompts = [draw(1 + i * 11 % 90, vocab, i) for i in range(20)] + [draw(90, vocab, 99)]
    edges = [draw(length, vocab, 200 + i) for i, length in enumerate(EDGES)]
    longest = ",".join(map(str, max(prompts, key=len)))
    with json_file(prompts) as batch, json_file(edges) as ends:
        return {
            "logits": bundle.text("logits", "--prompt-ids", longest, "--all", "--chunk", 9, "--json", *TEAM),
            "hidden states": bundle.text("hidden", "--prompt-ids", longest, "--json", *TEAM),
            "routes": bundle.text("routes", "--prompt-ids", longest, "--json", *TEAM),
            "a batch": bundle.text("logits", "--batch-file", batch, "--json", *TEAM),
            "tokens": tokens(bundle, batch),
            f"{len(edges)} prompts that end beside the end of a page": tokens(bundle, ends, "--chunk", 61),
        }


def tokens(bundle, batch, *arguments):
    done = bundle.json("generate", "--batch-file", batch, "-n", 3, "--ignore-eos", "--logprobs", 3, *TEAM, *arguments)
    return json.dumps([(one["ids"], one["logprobs"]) for one in done])


def described(manifest):
    """What poison.c has to know of the bundle."""
    limits = manifest["limits"]
    planes = [(p["group"], p["layers"], p["pages"], p["width"] * p["bytes_per_element"]) for p in manifest["cache"]]
    return {
        "POISON_LIMITS": f"{limits['step_tokens']} {limits['max_sequences']} {manifest['memory']['logits']}",
        "POISON_PLANES": " ".join(str(number) for plane in planes for number in plane),
    }


def check(source, library, options):
    report = Report(f"unwritten memory of {source} {' '.join(options)}")
    bundle = compiled(raised(source, CONTEXT), *LIMITS, *options)
    want = outputs(bundle)
    memory = bundle.manifest["memory"]
    owned = memory["cache"] + memory["arena"] + memory["logits"] + memory["scratch_per_worker"]
    with tempfile.NamedTemporaryFile("r") as poisoned:
        os.chdir(os.path.dirname(library))  # the loader takes a space in LD_PRELOAD for the end of a name
        os.environ.update(described(bundle.manifest), POISONED=poisoned.name)
        os.environ["LD_PRELOAD"] = "./" + os.path.basename(library)
        for name, word in WORDS.items():
            # The heap, too: MALLOC_PERTURB_ is the complement of the byte fresh memory gets.
            os.environ.update(POISON=word, MALLOC_PERTURB_=str(int(word[:2], 16) ^ 0xFF or 1))
            got = outputs(bundle)
            for what in want:
                report.check(got[what] == want[what], f"memory of {name}: {what}")
            poisoned.seek(0)
            at_start, by_steps = map(int, poisoned.read().split())
            report.check(at_start >= owned, f"memory of {name}: at least {owned} bytes were poisoned")
            report.check(by_steps >= 3 * memory["arena"], f"memory of {name}: poisoned before three steps and more")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(sys.argv[1], sys.argv[2], sys.argv[3:]))
    except Failure as failure:
        sys.exit(f"check_poison.py: {failure}")
