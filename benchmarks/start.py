"""Seconds from the start of a program to its first logits, with the hashes of its weights and without (--trust).

usage: start.py BUNDLE [--rounds N]

Each round starts all four in turn: weights in the page cache, and dropped from it before. Printed: the least and the
median of each, and what the hashes add to them. The first start is thrown away.
"""
import argparse
import glob
import os
import statistics
import subprocess
import time


def drop(bundle):
    for blob in glob.glob(os.path.join(bundle, "weights", "*.bin")):
        file = os.open(blob, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def start(bundle, *flags):
    begin = time.monotonic()
    subprocess.run([os.path.join(bundle, "run"), "logits", "--prompt-ids", "1", *flags], check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    start(args.bundle)
    seconds = {}
    for _ in range(args.rounds):
        for state in ("warm", "cold"):
            for flags in ((), ("--trust",)):
                if state == "cold":
                    drop(args.bundle)
                seconds.setdefault((state, *flags), []).append(start(args.bundle, *flags))
    for state in ("warm", "cold"):
        for name, of in (("least", min), ("median", statistics.median)):
            hashed, trusted = of(seconds[state,]), of(seconds[state, "--trust"])
            print(f"{state} {name:6}: {hashed:.4f} s, --trust {trusted:.4f} s, hashes add {hashed / trusted - 1:.1%}")


main()
