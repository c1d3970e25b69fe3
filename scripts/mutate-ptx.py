#!/usr/bin/env python3
"""Breaks kernels of test/Mutants/ptx, one place at a time, and counts what the machine of lib/Ptx notices.

    scripts/mutate-ptx.py build/unit/run-ptx [--sites N] [--seeds N] [KERNEL ...]

A text is launched with races looked for, under a few seeds, with wgmma ending by warp where the unbroken text is right
by that, too. It is noticed if there is a finding, or if buffers do not hold what the unbroken text leaves in them. What
is dropped or weakened: waits, fences, arrivals, barriers, commits; what is shifted: parities, numbers of bytes and of
threads, descriptors, swizzles. Those that are not noticed are listed.
"""
import argparse
import lzma
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "Mutants", "ptx")
WAIT = r"mbarrier\.try_wait\.parity[^;]*;\s*@P1 bra\.uni DONE;\s*bra\.uni\s+LAB_WAIT;"

# name, what is looked for, what stands in its place
MUTATIONS = [
    ("proxy fence dropped", r"fence\.proxy\.async[^;]*;", ""),
    ("proxy fence of other memory", r"fence\.proxy\.async\.shared::cta;", "fence.proxy.async.global;"),
    ("fence of made mbarriers dropped", r"fence\.mbarrier_init\.release\.cluster;", ""),
    ("barrier behind mbarrier.init dropped", r"bar\.sync\s+0;", ""),
    ("wgmma.fence dropped", r"wgmma\.fence\.sync\.aligned;", ""),
    ("commit of products dropped", r"wgmma\.commit_group\.sync\.aligned;", ""),
    ("wait for products dropped", r"wgmma\.wait_group\.sync\.aligned \d+;", ""),
    ("wait for products of a group before", r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 1;"),
    ("commit of copies dropped", r"cp\.async\.bulk\.commit_group;", ""),
    ("wait for copies dropped", r"cp\.async\.bulk\.wait_group[^;]*;", ""),
    ("mbarrier wait dropped", WAIT, ""),
    ("parity inverted", r"(mbarrier\.try_wait\.parity[^,]*, \[[^]]*\], )(%r\d+)(, \d+;)",
     r"{ .reg .b32 odd; xor.b32 odd, \2, 1; \1odd\3 }"),
    ("arrival dropped", r"(?m)^[^\n;]*mbarrier\.arrive\.(?!expect_tx)[^;]*;", ""),
    ("arrival twice", r"(?m)^([^\n;]*mbarrier\.arrive\.(?!expect_tx)[^;]*;)", r"\1 \1"),
    ("arrival in a smaller scope or relaxed", r"mbarrier\.arrive\.(release\.cluster\.)?(?=shared)",
     "mbarrier.arrive.relaxed.cta."),
    ("bytes that are expected dropped", r"(mbarrier\.arrive)\.expect_tx(\.[^;]*), %r\d+;", r"\1\2;"),
    ("number of arrivals one more", r"(mbarrier\.init[^,]*, )(%r\d+);",
     r"{ .reg .b32 more; add.u32 more, \2, 1; \1more; }"),
    ("named barrier dropped", r"bar\.sync\s+(?!0;)[^;]*;", ""),
    ("named barrier of more threads", r"(bar\.(?:sync|arrive)\s+[^,;]+, )(%?\w+);", r"\g<1>384;"),
    ("barrier of warps dropped", r"bar\.warp\.sync[^;]*;", ""),
    ("cluster's arrival and wait dropped", r"barrier\.cluster\.arrive[^;]*;\s*barrier\.cluster\.wait[^;]*;", ""),
    ("descriptor moved", r"add\.u32 la, (%r\d+), (\d+);", r"add.u32 la, \1, \2+16;"),
    ("first product added to what was there", r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"),
    ("swizzle of other rows", r"(and\.b32\s+%r\d+, %r\d+, )7;", r"\g<1>3;"),
    ("multicast to one CTA", r"(multicast::cluster[^;]*, )%rs\d+;", r"\g<1>1;"),
]


def sites(text, pattern, limit):
    """Matches, of many as many as `limit`, in even distances."""
    found = list(re.finditer(pattern, text))
    if len(found) <= limit:
        return found
    return [found[i * len(found) // limit] for i in range(limit)]


def written(path, text):
    with open(path, "w", encoding="utf8") as file:
        file.write(text)
    return path


def launched(options, path, launch, *by_warp):
    command = [options.program, path, launch, str(options.seeds), *by_warp]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return ["did not end"]
    return done.stdout.splitlines() or [f"ended with {done.returncode}"]


def mutate(options, kernel, folder):
    """(noticed, all) of a kernel."""
    launch = os.path.join(FOLDER, kernel + ".launch")
    with lzma.open(os.path.join(FOLDER, kernel + ".ptx.xz"), "rt", encoding="utf8") as file:
        text = file.read()
    path = os.path.join(folder, kernel + ".ptx")
    right = launched(options, written(path, text), launch)
    by_warp = ["by-warp"] if launched(options, path, launch, "by-warp") == right else []
    if len(set(right)) != 1 or not right[0].startswith("left "):
        sys.exit(f"{kernel}: the unbroken text is not accepted: {right[0]}")
    noticed = total = 0
    for name, pattern, instead in MUTATIONS:
        for match in sites(text, pattern, options.sites):
            broken = text[:match.start()] + match.expand(instead) + text[match.end():]
            said = [line for line in launched(options, written(path, broken), launch, *by_warp) if line != right[0]]
            total += 1
            noticed += bool(said)
            line = text.count("\n", 0, match.start()) + 1
            if not said:
                print(f"{kernel}.ptx:{line}: not noticed: {name}")
            elif options.verbose:
                print(f"{kernel}.ptx:{line}: {name}: {said[0]}")
            sys.stdout.flush()
    return noticed, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="run-ptx of a build")
    parser.add_argument("kernels", nargs="*", help="gemm-cluster, gemm-fp8, mla; default: all")
    parser.add_argument("--sites", type=int, default=3, help="of a mutation, at most (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=4, help="that a text is run under (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="what was found, too")
    options = parser.parse_args()
    noticed = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for kernel in options.kernels or ["gemm-cluster", "gemm-fp8", "mla"]:
            of_kernel = mutate(options, kernel, folder)
            print(f"{kernel}: {of_kernel[0]} of {of_kernel[1]} noticed")
            noticed, total = noticed + of_kernel[0], total + of_kernel[1]
    print(f"{noticed} of {total} noticed")


if __name__ == "__main__":
    main()
