"""check_mutations.py CHECKPOINT RANKS[xNODES] MUTATIONS VARIANTS [k2c compile options]: what form verifiers accept has
the program's bits.

The distributed form of CHECKPOINT (a folder, or wide-KIND) for RANKS ranks on NODES nodes (one) is changed, an op at a
time (mutations.py):
MUTATIONS times at random, and VARIANTS times by moving an op to where it may as well stand. Every form behind it is
made of each. A mutation may be refused, a variant may not. What is accepted has the program's bits: its runtime form is
the same text, or it is linked, put into the bundle, and run, and every logit and every generated token of prompts that
share the ranks are compared.
"""
import collections
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from bundles import Bundle, Failure, compiled, form, output
from check_invariance import draw
from check_ranks import LIMITS, LOCAL, topology
from mutations import Mutator
from wide import checkpoint as found

TARGET = "x86-64-v3"
FORMS = ["--verify-form=form=distributed", "--scheduled-form", "--runtime-form"]
CODE = re.compile(r"(?ms)^  (?:builtin\.)?module @\w+\.code\b.*?^  \}\n")
# What k2c makes of the code of kernels (lib/Target/Host/Lower.cpp).
LOWERED = ["--convert-scf-to-cf", "--convert-to-llvm", "--reconcile-unrealized-casts"]
LINK = ["ld.lld-22", "-shared", "-z", "noexecstack", "-z", "now", "--gc-sections", "--hash-style=gnu"]


def lowered(text, *passes):
    """(exit code, standard output, messages) of k2c-opt."""
    done = subprocess.run(["k2c-opt", *passes, "-"], input=text, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise Failure(f"k2c-opt {' '.join(passes)}: exit {done.returncode}: {done.stderr[-2000:]}")
    return done.returncode, done.stdout, done.stderr


def slots(runtime):
    """First slot and number of slots of each family, by what is packed there: a runtime form numbers them as it reads
    them, in layouts that follow from its kernels. Of a weight in parts each layer has a slot for each."""
    listed = re.findall(r"(?m)^  rt\.weight_slots (@\S+ of @\S+) first (\d+) count (\d+) (.*)", runtime)
    parts = {what: int((re.search(r" parts (\d+)", what) or (0, 1))[1]) for _, _, _, what in listed}
    return {f"{name} {what}": (int(first), int(count) * parts[what]) for name, first, count, what in listed}


def packed(bundle, runtime):
    """What is packed -> [(entry of the list of weights, share of a slot)] of a bundle, by its runtime form."""
    with open(os.path.join(bundle.folder, "weights", "index.json")) as file:
        entries = {entry["slot"]: entry for entry in json.load(file)["slots"]}
    shares = [dict(share, slots=1) for share in bundle.manifest["shares"] for _ in range(share["slots"])]
    return {what: [(entries[slot], shares[slot]) for slot in range(first, first + count)]
            for what, (first, count) in slots(runtime).items()}


class Programs:
    """Bundles of runtime forms, which share the weights of `bundle` and of `unfused`, each with its runtime form, and
    objects of equal code."""

    def __init__(self, bundle, unfused, folder):
        self.bundle, self.folder = bundle[0], folder
        self.unfused = unfused[0]
        self.packed = {**packed(*unfused), **packed(*bundle)}
        self.objects = {}

    def object(self, text):
        """The object of a module of the llvm form."""
        if text not in self.objects:
            path = os.path.join(self.folder, f"{len(self.objects)}.o")
            llvm = output(["mlir-opt", *LOWERED], input=text)
            ir = 'target triple = "x86_64-unknown-linux-gnu"\n'
            ir += output(["mlir-translate", "--mlir-to-llvmir"], input=llvm)
            output(["clang-22", "-x", "ir", "-", "-O1", "-fPIC", "-march=" + TARGET, "-ffp-contract=off", "-c",
                    "-Wno-override-module", "-o", path], input=ir)
            self.objects[text] = path
        return self.objects[text]

    def program(self, runtime, path):
        """Links what `k2c compile` would of this runtime form."""
        code, llvm, said = lowered(runtime, "--llvm-form")
        if code:
            raise Failure(f"the llvm form of what was accepted: {said}")
        objects = [self.object(CODE.sub("", llvm))]
        objects += [self.object(part[0]) for part in CODE.finditer(llvm)]
        with open(os.path.join(self.folder, "exports"), "w") as exports:
            exports.write("{ global: k2c_program_query; local: *; };\n")
        output([*LINK, "--version-script", exports.name, "-o", path, *objects])

    def listed(self, runtime):
        """(the list of weights, the shares of slots), numbered as this runtime form numbers its slots."""
        own = sorted((first, what) for what, (first, _) in slots(runtime).items())
        missing = [what for _, what in own if what not in self.packed]
        if missing:
            raise Failure(f"reads weights that are not packed: {missing}")
        pairs = [pair for _, what in own for pair in self.packed[what]]
        entries = [dict(entry, slot=slot) for slot, (entry, _) in enumerate(pairs)]
        runs = [(share, len(list(of))) for share, of in itertools.groupby(share for _, share in pairs)]
        return {"format": 1, "slots": entries}, [dict(share, slots=count) for share, count in runs]

    def of(self, runtime):
        """The bundle of a runtime form."""
        folder = os.path.join(self.folder, "bundle")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.bundle.folder, folder, copy_function=os.link, symlinks=True)
        manifest = json.loads(json.dumps(self.bundle.manifest))
        for name in os.listdir(os.path.join(self.unfused.folder, "weights")):
            if not os.path.exists(os.path.join(folder, "weights", name)):
                os.link(os.path.join(self.unfused.folder, "weights", name), os.path.join(folder, "weights", name))
        sizes = re.search(r"rt\.program @\w+ entries .* arena (\d+)(?: second \d+)? scratch (\d+)", runtime)
        manifest["memory"].update(arena=int(sizes[1]), scratch_per_worker=int(sizes[2]))
        manifest["kernels"] = [{"name": name} for name in re.findall(r"(?m)^  rt\.kernel @(\w+) id", runtime)]
        for name in ("manifest.json", "weights/index.json", "program.so", "files.json"):
            os.remove(os.path.join(folder, name))  # links into the bundle
        shutil.copy(os.path.join(self.bundle.folder, "files.json"), folder)
        index, manifest["shares"] = self.listed(runtime)
        for name, value in (("manifest.json", manifest), ("weights/index.json", index)):
            with open(os.path.join(folder, name), "w") as file:
                json.dump(value, file)
        self.program(runtime, os.path.join(folder, "program.so"))
        output(["k2c-relist", folder, "manifest.json", "weights/index.json", "program.so"])
        return Bundle(folder)


def results(bundle, prompts):
    """What the ranks compute for prompts that they share, chunk by chunk, and then generate."""
    logits = bundle.batch_logits(prompts, "--all", "--chunk", 7, *LOCAL)
    return logits, bundle.generate(prompts[0], 4, *LOCAL)["ids"]


def verdict(programs, runtime, text, expected, prompts):
    """How it ends with a changed form; a Failure where other bits are accepted."""
    code, made, said = lowered(text, *FORMS)
    if code:
        return "refused", said
    if made == runtime:
        return "the same runtime form", ""
    if results(programs.of(made), prompts) != expected:
        raise Failure("is accepted, and has other bits")
    return "run, the same bits", ""


def main(name, shape, mutations, variants, *asked):
    checkpoint = found(name)
    ranks, nodes = (int(part) for part in (shape + "x1").split("x")[:2])
    options = ("--topology", topology(ranks, nodes), "--target", TARGET, *LIMITS, *asked)
    bundle = compiled(checkpoint, *options)
    code, text, said = lowered(form(checkpoint, "distributed", *options), "--mlir-print-op-generic")
    if code:
        raise Failure(said)
    mutator = Mutator(text)
    code, runtime, said = lowered(text, *FORMS)
    if code:
        raise Failure(said)
    loose = ("--without", "fusion")
    unfused = compiled(checkpoint, *options, *loose), form(checkpoint, "runtime", "--no-kernels", *options, *loose)
    prompts = [draw(1 + i * 13 % 41, bundle.manifest["model"]["vocab"], i) for i in range(5)]
    expected = results(bundle, prompts)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(bundle.folder)) as folder:
        programs = Programs((bundle, runtime), unfused, folder)
        if results(programs.of(runtime), prompts) != expected:
            raise Failure("the program that is linked here has other bits than the bundle")
        for what, count, kinds in (("mutations", int(mutations), ("delete", "duplicate", "move", "branch")),
                                   ("variants", int(variants), ("move",))):
            tally = collections.Counter()
            for seed in range(count):
                change, changed = mutator.mutant(seed, kinds)
                try:
                    how, said = verdict(programs, runtime, changed, expected, prompts)
                except Failure as wrong:
                    raise Failure(f"{what}, {change}: {wrong}") from wrong
                if how == "refused" and what == "variants":
                    raise Failure(f"{what}, {change}: is refused: {said}")
                tally[how] += 1
                print(f"{change}: {how} {said.splitlines()[0] if said else ''}", flush=True)
            counts = ", ".join(f"{number} {how}" for how, number in tally.items())
            print(f"{name} on {ranks} ranks: {count} {what}: {counts}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_mutations.py: {wrong}")
