"""The memory certificate of a bundle against what its runs take.

usage: check_certificate.py BUNDLE [--threads N] [--context N] [--at-most]

Runs `generate` and `logits` over the whole context (or N tokens of it) and samples /proc/PID/smaps_rollup. Checked:
anonymous memory is what `info` states as owned and reserve, weights and code aside, or at most 1 % less; pages of files
are at most the weights and the code; the peak of all of it is `peak_bytes`, or at most 1 % less. `logits` of ids reads
no tokenizer, so it takes that part of the reserve less. With --at-most, runs may also take less: small models do, whose
own bytes are not much more than the code that no run touches.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from bundles import Bundle, Failure

MIN_SAMPLES = 20


def sample(process):
    """Anonymous bytes and bytes of files that are resident now; None when the process is gone."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            found = dict(line.split(":") for line in file.readlines()[1:])
    except (OSError, ValueError):
        return None
    resident, anonymous = (int(found[key].split()[0]) * 1024 for key in ("Rss", "Anonymous")) if found else (0, 0)
    return anonymous, resident - anonymous


def peaks(command):
    """The largest anonymous, file and total bytes of a run, and how often it was looked at."""
    with tempfile.TemporaryFile() as errors:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        anonymous = files = total = samples = 0
        while run.poll() is None:
            if now := sample(run.pid):
                anonymous, files, total = max(anonymous, now[0]), max(files, now[1]), max(total, sum(now))
                samples += 1
            time.sleep(0.002)
        if run.returncode:
            errors.seek(0)
            raise Failure(f"{' '.join(command)[:200]}\nexit {run.returncode}: {errors.read().decode().strip()}")
    return anonymous, files, total, samples


def check(bundle, name, arguments, threads, at_most):
    """Prints what one command takes; the sentences that the certificate gets wrong."""
    rank = bundle.json("info", "--threads", threads)["ranks"][0]
    unread = 0 if name == "generate" else rank["reserve_parts"]["tokenizer"]
    mapped = rank["owned"]["weights"] + rank["owned"]["code"]
    owned, stated = sum(rank["owned"].values()) - mapped + rank["reserve_bytes"] - unread, rank["peak_bytes"] - unread
    run = [os.path.join(bundle.folder, "run"), name, *map(str, arguments), "--threads", str(threads), "--json"]
    anonymous, files, total, samples = peaks(run)
    for _ in range(9):  # on a busy machine a short run is sampled a few times only
        if samples < MIN_SAMPLES:
            again = peaks(run)
            anonymous, files, total = map(max, (anonymous, files, total), again)
            samples += again[-1]
    print(f"{name:8} anonymous {anonymous:,} of {owned:,} ({anonymous / owned:.2%}); files {files:,} of {mapped:,}; "
          f"peak {total:,} of {stated:,} ({total / stated:.2%}); {samples} samples")
    wrong = []
    if samples < MIN_SAMPLES:
        wrong.append(f"{name}: {samples} samples say little; choose a longer run")
    if anonymous > owned:
        wrong.append(f"{name}: {anonymous} anonymous bytes, the certificate states {owned}")
    if anonymous < owned - owned / 100 and not at_most:
        wrong.append(f"{name}: {anonymous} anonymous bytes, more than 1 % less than the certificate's {owned}")
    if files > mapped:
        wrong.append(f"{name}: {files} bytes of files, weights and code have {mapped}")
    if total > stated:
        wrong.append(f"{name}: peak of {total} bytes, above the stated {stated}")
    if total < stated - stated / 100 and not at_most:
        wrong.append(f"{name}: peak of {total} bytes, more than 1 % less than the stated {stated}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--context", type=int)
    parser.add_argument("--at-most", action="store_true")
    args = parser.parse_args()
    bundle = Bundle(args.bundle)
    vocab = bundle.manifest["model"]["vocab"]
    context = min(args.context or 1 << 60, bundle.manifest["limits"]["max_context"])
    ids = [(3 + 7 * i) % vocab for i in range(context)]
    half = context // 2

    def prompt(count):
        return ["--prompt-ids", ",".join(map(str, ids[:count]))]

    wrong = check(bundle, "generate", [*prompt(half), "-n", context - half, "--ignore-eos"], args.threads,
                  args.at_most)
    wrong += check(bundle, "logits", prompt(context), args.threads, args.at_most)
    if wrong:
        raise Failure("\n".join(wrong))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
