#!/usr/bin/env python3
"""Breaks kernels, one place at a time, and counts what the machine of lib/Ptx notices.

    scripts/mutate-ptx.py BUILD [--sites N] [--seeds N] [--sample N] [KERNEL ...]     # of test/Mutants/ptx
    scripts/mutate-ptx.py BUILD [KERNEL ...] --bundle DIR [--sites N] [--seeds N]     # of a bundle for GPUs

A text is launched with races looked for, under a few seeds, with wgmma ending by warp where the unbroken text is
right by that, too. It is noticed if there is a finding, or if buffers do not hold what the unbroken text leaves in
them. What is dropped or weakened: waits, fences, arrivals, barriers, commits; what is shifted: parities, numbers of
bytes and of threads, descriptors, swizzles. Those that are not noticed are listed. Places of
test/Mutants/ptx/harmless.txt, which are no mistakes there, are launched and not counted. Exit status 1: less than 95
% are noticed, or one of those places is.

A bundle is copied, one of its kernels broken, and the logits of prompts and the tokens that two steps choose after them
computed by BUILD/lib/libk2c-cuda.so: prompts of some lengths, as a kernel has code for several numbers of rows, of
which those that are too many are the last one again, and nobody reads them. A place is named by its kernel, its
mutation and which one of all that it matches. Places to which no prompt brings a lane, so that a trap is not noticed
either, are not counted, and neither are barriers of warps in kernels that are right, under all orders and without a
race, when all of these are gone.
"""
import argparse
import json
import lzma
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

REQUIRED = 0.95  # of those that are mistakes
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
    ("descriptor moved", r"(add\.u32 la, %r\d+, \d+;)", r"\1 add.u32 la, la, 16;"),
    ("first product added to what was there", r"setp\.ne\.b32 p, 0, 0;", "setp.ne.b32 p, 1, 0;"),
    ("swizzle of other rows", r"(and\.b32\s+%r\d+, %r\d+, )7;", r"\g<1>3;"),
    ("multicast to one CTA", r"(multicast::cluster[^;]*, )%rs\d+;", r"\g<1>1;"),
]

# Those of a bundle's kernels, whose lanes share what they do. Barriers of warps go all at once: many of them are there
# in case that what stands beside them shares memory, and order nothing where it does not.
ALL = "barriers of warps dropped"
BUNDLE_MUTATIONS = [
    (ALL, r"bar\.warp\.sync[^;]*;", ""),
    ("barrier dropped", r"(?:bar|barrier)\.(?:cta\.)?(?:sync|arrive)[^;]*;", ""),
    ("fence dropped", r"(?:fence|membar)\.[^;]*;", ""),
    ("exchange with no other lane", r"(shfl\.sync\.bfly\.b32[^;]*, )\d+(, \d+, -1;)", r"\g<1>0\2"),
    ("addition made a subtraction", r"add(?=\.rn(?:\.ftz)?\.f32)", "sub"),
    ("store dropped", r"(?m)^\s*st\.(?:global|shared)\.[^;]*;", ""),
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


class Tally:
    """What was noticed, of what; where a place has a line in harmless.txt, it is apart."""

    def __init__(self, verbose):
        self.verbose = verbose
        self.noticed = self.total = self.harmless = self.stale = 0
        with open(os.path.join(FOLDER, "harmless.txt"), encoding="utf8") as file:
            self.known = {line.split(": ")[0] for line in file if not line.startswith("#")}

    def add(self, place, name, said):
        is_known = f"{place} {name}" in self.known
        self.harmless += is_known
        self.stale += is_known and bool(said)
        self.total += not is_known
        self.noticed += not is_known and bool(said)
        if bool(said) == is_known:
            what = f"called harmless, and noticed: {name}: {said[0]}" if said else f"not noticed: {name}"
            print(f"{place}: {what}")
        elif self.verbose:
            print(f"{place}: {name}: {said[0] if said else 'harmless'}")
        sys.stdout.flush()

    def finish(self):
        print(f"{self.noticed} of {self.total} noticed, {self.harmless} harmless")
        return 1 if self.stale or self.noticed < REQUIRED * self.total else 0


def places(texts, mutations, options):
    """(kernel, name, match, what stands there then) of all texts, or of a sample of them."""
    found = [
        (kernel, name, match, match.expand(instead))
        for kernel, text in texts.items()
        for name, pattern, instead in mutations
        for match in sites(text, pattern, 1 if name == ALL else options.sites)
    ]
    if options.sample and options.sample < len(found):
        found = random.Random(options.draw).sample(found, options.sample)
    return found


def broken(text, match, instead, name=""):
    rest = re.sub(match.re, "", text[match.end() :]) if name == ALL else text[match.end() :]
    return text[: match.start()] + instead + rest, text.count("\n", 0, match.start()) + 1


def mutate_kernels(options, tally, folder):
    texts, right, by_warp = {}, {}, {}
    for kernel in options.kernels or ["gemm-cluster", "gemm-fp8", "mla"]:
        with lzma.open(os.path.join(FOLDER, kernel + ".ptx.xz"), "rt", encoding="utf8") as file:
            texts[kernel] = file.read()
    for kernel, name, match, instead in places(texts, MUTATIONS, options):
        path, launch = os.path.join(folder, kernel + ".ptx"), os.path.join(FOLDER, kernel + ".launch")
        if kernel not in right:
            right[kernel] = launched(options, written(path, texts[kernel]), launch)
            by_warp[kernel] = ["by-warp"] if launched(options, path, launch, "by-warp") == right[kernel] else []
            if len(set(right[kernel])) != 1 or not right[kernel][0].startswith("left "):
                sys.exit(f"{kernel}: the unbroken text is not accepted: {right[kernel][0]}")
        text, line = broken(texts[kernel], match, instead)
        said = launched(options, written(path, text), launch, *by_warp[kernel])
        if said[0].startswith(path) and "kernel '" not in said[0]:
            sys.exit(f"{kernel}.ptx:{line}: {name}: what stands there then is no PTX: {said[0]}")
        tally.add(f"{kernel}.ptx:{line}", name, [one for one in said if one != right[kernel][0]])


def ran(options, bundle, command, rows, seed, strict):
    """What a command of the bundle prints for a prompt of `rows` tokens, or what went wrong."""
    prompt = ",".join(str(1 + 7 * i % 50) for i in range(rows))
    command = [os.path.join(bundle, "run"), *command, "--prompt-ids", prompt, "--json", "--driver"]
    command += [os.path.join(os.path.abspath(options.build), "lib/libk2c-cuda.so"), "--deadline", "1000"]
    how = {"K2C_EMULATED_STRICT": strict, "K2C_EMULATED_SEED": str(seed), "K2C_EMULATED_INSTRUCTIONS": str(1 << 24)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **how}
        )
    except subprocess.TimeoutExpired:
        return "did not end"
    findings = [line for line in done.stderr.splitlines() if "kernel '" in line or "error" in line]
    return done.stdout if done.returncode == 0 else (findings or [f"ended with {done.returncode}"])[0]


def computed(options, bundle, rows, seed, strict="1"):
    """The logits of a prompt's rows and the tokens that two steps choose, or what went wrong."""
    logits = ran(options, bundle, ["logits", "--all"], rows, seed, strict)
    if logits[0] not in "[{":
        return logits
    chosen = ran(options, bundle, ["generate", "-n", "2", "--ignore-eos"], rows, seed, strict)
    return logits + str(json.loads(chosen)["ids"]) if chosen[0] == "{" else chosen


def kernels_of(bundle, chosen):
    """name -> (path, text) of each kernel: the name of its model and that of its first launch, which it keeps whatever
    its text is."""
    with open(os.path.join(bundle, "manifest.json"), encoding="utf8") as file:
        manifest = json.load(file)
    texts = {}
    for entry in manifest["kernels"]:
        path = os.path.join(bundle, "ptx", entry["hash"] + ".ptx")
        if (not chosen or entry["name"] in chosen) and path not in [of for of, _ in texts.values()]:
            with open(path, encoding="utf8") as file:
                texts[f"{manifest['model']['name']} {entry['name']}"] = path, file.read()
    return texts


def mutate_bundle(options, tally, folder):
    bundle = os.path.join(folder, "bundle")
    shutil.copytree(options.bundle, bundle, symlinks=True)
    kernels = kernels_of(bundle, options.kernels)
    if not kernels:
        sys.exit(f"{options.bundle}: it has no kernel of these names: {', '.join(options.kernels)}")
    right = {rows: computed(options, bundle, rows, 1) for rows in options.rows}
    for said in right.values():
        if not said.startswith("{") and not said.startswith("["):
            sys.exit(f"{options.bundle}: it does not run: {said}")

    def write(path, text):
        written(path, text)
        relist = [os.path.join(options.build, "bin/k2c-relist"), bundle, os.path.relpath(path, bundle)]
        subprocess.run(relist, check=True)

    def brought(path, text):
        """Prompts that bring a lane to a trap of the text."""
        write(path, text)
        return [rows for rows in options.rows if computed(options, bundle, rows, 1, strict="0") != right[rows]]

    def said_of(path, text, prompts):
        """What is wrong with the first prompt and seed that show it; empty: nothing."""
        write(path, text)
        for rows in prompts:
            for seed in range(options.seeds):
                said = computed(options, bundle, rows, seed + 1)
                if said != right[rows]:
                    return ["other logits or tokens" if said[0] in "[{" else said]
        return []

    texts = {kernel: text for kernel, (_, text) in kernels.items()}
    for kernel, name, match, instead in places(texts, BUNDLE_MUTATIONS, options):
        path, whole = kernels[kernel]
        text, line = broken(whole, match, instead, name)
        starts = [one.start() for one in re.finditer(match.re, whole)]
        place = f"{kernel} {starts.index(match.start()) + 1} of {len(starts)}"
        prompts = brought(path, broken(whole, match, f"trap; {match.group(0)}")[0]) if name != ALL else options.rows
        said = said_of(path, text, prompts)
        if not prompts:
            print(f"{place}: no lane comes there: {name}")
        elif name == ALL and not said:
            print(f"{place}: its lanes share no memory: {name}")
        else:
            tally.add(place, name, said)
            if not said:
                print(f"    {os.path.basename(path)}:{line}: {match.group(0).strip()}, of {prompts} rows")
        write(path, whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="folder of a build with unit/run-ptx")
    parser.add_argument("kernels", nargs="*", help="gemm-cluster, gemm-fp8, mla, or of a bundle; default: all")
    parser.add_argument("--bundle", help="a bundle for GPUs, whose kernels are broken in place of these")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[3, 1, 2, 4, 8, 16], help="tokens of the bundle's prompts (%(default)s)"
    )
    parser.add_argument("--sites", type=int, default=3, help="of a mutation in a text, at most (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=4, help="that a text is run under (default: %(default)s)")
    parser.add_argument("--sample", type=int, help="as many of all places, drawn; default: all")
    parser.add_argument("--draw", type=int, default=1, help="seed of the sample (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="what was found, too")
    options = parser.parse_args()
    options.program = os.path.join(options.build, "unit/run-ptx")
    tally = Tally(options.verbose)
    with tempfile.TemporaryDirectory() as folder:
        (mutate_bundle if options.bundle else mutate_kernels)(options, tally, folder)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
