"""Makes the folder that checks a GPU on a machine without compiler and network: python3 pack.py --help.

It holds programs of small checkpoints, what processors compute of the same prompts, and the scripts beside this one.
What is in each bundle is in it once.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from array import array

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(HERE, "..", "..", "test", "EndToEnd", "oracle")
UNFINISHED = "unfinished"  # a file of a folder that is being packed
SCRIPTS = ("check.py", "driver.py", "machine.py", "page.py", "probes.py", "program.py", "speed.py", "torch_rate.py")
PROGRAMS = ("llama,mixtral,qwen3_moe,deepseek_v3,kimi_k2,deepseek_v2_lite,olmoe,deepseek_v3_fp8,odd_minimax_m2,"
            "odd_smollm3,mixtral:bf16,deepseek_v3:bf16")
MEGABYTES = 60


class Failure(Exception):
    """What stops the packing, in one line."""


def output(command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command[:3]))}: {(done.stderr.strip().splitlines() or ['fails'])[-1]}")
    return done.stdout


class Packer:
    def __init__(self, options):
        self.options, self.folder = options, os.path.abspath(options.folder)
        self.k2c = os.path.join(options.tools, "k2c")

    def compile(self, source, bundle, topology, compute):
        output([self.k2c, "compile", source, "-o", bundle, "--topology", topology, "--compute", compute, "--quiet",
                *(("--jobs", self.options.jobs) if self.options.jobs else ()),
                *(("--cache-dir", self.options.cache_dir) if self.options.cache_dir else ())])

    def write_logits(self, name, rows):
        path = os.path.join(self.folder, "references", name + ".f32")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(array("f", sum(rows, [])).tobytes())
        return os.path.relpath(path, self.folder)

    def share(self, bundle):
        """What all bundles have, the program that runs them and its libraries, is kept once: check.py puts it back."""
        names = ["run", *(os.path.join("lib", name) for name in os.listdir(os.path.join(bundle, "lib")))]
        for name in names:
            path, kept = os.path.join(bundle, name), os.path.join(self.folder, "common", name)
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            os.replace(path, kept)

    def prompt(self, run, name, prompt, count, is_golden):
        """What a processor computes of a prompt, the golden tokens where there are any."""
        ids = ",".join(map(str, prompt["ids"]))
        logits = json.loads(output([*run("logits"), "--prompt-ids", ids, "--all", "--json"]))["logits"]
        made = json.loads(output([*run("generate"), "--prompt-ids", ids, "-n", count, "--ignore-eos", "--json"]))["ids"]
        if is_golden and made != prompt["greedy"]["ids"]:
            raise Failure(f"{name}: this machine's processor does not generate the golden tokens of {ids}")
        return {"ids": prompt["ids"], "tokens": made, "logits": self.write_logits(f"{name}-{prompt['name']}", logits)}

    def case(self, asked):
        model, _, compute = asked.partition(":")
        compute = compute or "f32"
        source = os.path.join(ORACLE, model)
        if compute not in ("f32", "bf16") or not os.path.exists(os.path.join(source, "golden.json")):
            known = sorted(each for each in os.listdir(ORACLE) if os.path.exists(f"{ORACLE}/{each}/golden.json"))
            raise Failure(f"--programs {asked}: choose from {', '.join(known)}, with :bf16 or without")
        print(f"packing {asked}", file=sys.stderr, flush=True)
        name = f"{model}-{compute}"
        with open(os.path.join(source, "golden.json")) as file:
            golden = json.load(file)
        self.compile(source, os.path.join(self.folder, name), self.options.topology, compute)
        with tempfile.TemporaryDirectory(prefix="k2c-gpu-check-") as spare:
            bundle, prompts = os.path.join(spare, "cpu"), os.path.join(spare, "prompts.json")
            self.compile(source, bundle, "cpu1", compute)
            run = lambda command: [os.path.join(bundle, "run"), command, "--threads", "1"]
            cases = [self.prompt(run, name, prompt, golden["new_tokens"], compute == "f32")
                     for prompt in golden["prompts"][: self.options.prompts]]
            with open(prompts, "w") as file:
                json.dump(golden["batch"]["ids"], file)
            answers = json.loads(output([*run("logits"), "--batch-file", prompts, "--json"]))
        self.share(os.path.join(self.folder, name))
        rows = [row for each in answers for row in each["logits"]]
        return {"name": name, "bundle": name, "prompts": cases,
                "batch": {"ids": golden["batch"]["ids"], "logits": self.write_logits(f"{name}-batch", rows)}}


def revision():
    try:
        return output(["git", "-C", HERE, "describe", "--always", "--dirty"]).strip()
    except (Failure, OSError):
        return "unknown"


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


def bytes_of(folder):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


def pack(options):
    packer = Packer(options)
    if os.path.exists(packer.folder):
        if os.listdir(packer.folder) and not any(os.path.exists(os.path.join(packer.folder, name))
                                                 for name in ("facts.json", UNFINISHED)):
            raise Failure(f"{packer.folder} is not empty, and no folder of gpu-check.sh; name another")
        shutil.rmtree(packer.folder)
    os.makedirs(packer.folder)
    unfinished = os.path.join(packer.folder, UNFINISHED)
    open(unfinished, "w").close()
    facts = {"version": output([packer.k2c, "--version"]).splitlines()[0], "revision": revision(),
             "processor": processor(), "date": time.strftime("%Y-%m-%d", time.gmtime()),
             "cases": [packer.case(asked) for asked in options.programs.split(",")]}
    for name in SCRIPTS:
        shutil.copy(os.path.join(HERE, name), packer.folder)
    with open(os.path.join(packer.folder, "facts.json"), "w") as file:
        json.dump(facts, file, indent=1)
    os.remove(unfinished)
    size = bytes_of(packer.folder)
    if size > options.megabytes * 1e6:
        raise Failure(f"{packer.folder} has {size / 1e6:.1f} MB, more than {options.megabytes:g} MB; choose fewer "
                      "--programs")
    print(f"{packer.folder}: {len(facts['cases'])} programs, {size / 1e6:.1f} MB; there: python3 check.py --help")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tools", required=True, help="folder of k2c")
    parser.add_argument("--topology", default="h200x1")
    parser.add_argument("--programs", default=PROGRAMS, help="checkpoints of test/EndToEnd/oracle, with :bf16")
    parser.add_argument("--prompts", type=int, default=4, help="of each, at most")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--cache-dir")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="most that the folder may have")
    try:
        pack(parser.parse_args())
    except Failure as failure:
        sys.exit(f"gpu-check: error: {failure}")
