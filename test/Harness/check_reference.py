"""check_reference.py CHECKPOINT [--prompts N] [k2c compile options]: a program of a GPU that reads the checkpoint's own
bytes (--weights reference) computes what one with packed weights does.

Greedy tokens of the first N prompts are the golden ones (with --compute bf16 the packed program's), every logit has the
bits of the packed program, in the emulated driver. The bundle has no blobs but those of computed tables, with the bytes
that `info` states, and what it reads of the checkpoint is every byte of it that the packed weights are made of.
"""
import argparse
import json
import os
import sys

from bundles import Failure, compiled
from golden import Golden, Report


def blob_bytes(bundle):
    folder = os.path.join(bundle.folder, "weights")
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".bin"))


def check_files(report, reference, packed):
    """What is in the bundle, and what it says of that."""
    info = reference.json("info")
    weights, own = info["ranks"][0]["owned"]["weights"], info["device"]["reference_bytes"]
    report.check(0 < own < weights, f"{own} of {weights} bytes of weights are the checkpoint's")
    own_peak = info["ranks"][0]["device_bytes"]
    report.equal(reference.manifest["predicted"]["peak_bytes"], own_peak, "the planner's bytes: the certificate's")
    report.equal(blob_bytes(reference), weights - own, "bytes of blobs: computed tables alone")
    report.check(packed.json("info")["device"]["reference_bytes"] == 0, "packed weights are no checkpoint's")
    with open(os.path.join(reference.folder, "weights", "index.json")) as file:
        index = json.load(file)
    names = sorted(os.path.basename(entry["file"]) for entry in index["files"])
    stored = sorted(name for name in os.listdir(reference.source) if name.startswith("model") and "index" not in name)
    report.equal(names, stored, "files of the checkpoint in the index")
    link = os.path.join(reference.folder, "weights", "checkpoint")
    report.equal(os.path.realpath(link), os.path.realpath(reference.source), "folder of the checkpoint")


def check(source, prompts, options):
    report = Report(f"weights of {source} as they are {' '.join(options)}")
    packed = compiled(source, "--topology", "h200x1", *options)
    reference = compiled(source, "--topology", "h200x1", "--weights", "reference", *options)
    check_files(report, reference, packed)
    golden = Golden(source)
    for number, prompt in enumerate(golden.prompts[:prompts]):
        name, ids = prompt["name"], prompt["ids"]
        count = golden.document["new_tokens"]
        tokens = packed.generate(ids, count)["ids"] if "bf16" in options else prompt["greedy"]["ids"]
        report.equal(reference.generate(ids, count, "--emulate-seed", number + 1)["ids"], tokens, f"{name}: tokens")
        report.check(reference.logits(ids, "--all") == packed.logits(ids, "--all"), f"{name}: bits of logits")
    batch = golden.batch["ids"]
    report.check(reference.batch_logits(batch) == packed.batch_logits(batch), "bits of logits of a batch")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--prompts", type=int, default=1)
    arguments, others = parser.parse_known_args()
    try:
        sys.exit(check(arguments.source, arguments.prompts, others))
    except Failure as failure:
        sys.exit(f"check_reference.py: {failure}")
