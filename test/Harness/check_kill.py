"""Kills `k2c compile` and `k2c pack` at random moments; the same command must then work, and give the same bundle.

usage: check_kill.py CHECKPOINT [--moments N] [--seed S]

Each moment starts from nothing: the command runs for a random time, at most as long as it takes, and is killed with all
its children (SIGKILL); one that has ended before counts for nothing. What it leaves must be no bundle, or a whole one;
DIR/run of a killed pack gives the logits or is refused with one line. Then the command is repeated: `k2c verify` finds
every hash right, and the logits are those of a bundle that nobody disturbed. Every other compile replaces a
bundle without weights, every fourth has no cache of kernels.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from bundles import Failure, objects, output

FLAGS = ["--compute", "f32", "--max-context", "64", "--max-sequences", "2", "--step-tokens", "64"]


def killed_after(seconds, command):
    """Runs `command` for `seconds`; whether it had to be killed."""
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        run.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return True


def logits(bundle):
    return [os.path.join(bundle, "run"), "logits", "--prompt-ids", "1,2,3,4,5", "--json", "--threads", "1"]


def timed(command):
    begin = time.monotonic()
    output(command)
    return time.monotonic() - begin


def check_leftover(bundle, expected, has_weights):
    """A bundle that is there is whole; one whose weights a killed pack did not finish is refused."""
    if not os.path.exists(os.path.join(bundle, "manifest.json")):
        return
    done = subprocess.run(logits(bundle), capture_output=True, text=True)
    refused = done.returncode == 1 and not done.stdout and done.stderr.count("\n") == 1
    if not (refused and not has_weights) and done.stdout != expected:
        raise Failure(f"what was left of {bundle}: exit {done.returncode}: {done.stderr}{done.stdout[:200]}")


class Scene:
    """The commands, in a folder of their own, and what an undisturbed bundle prints."""

    def __init__(self, folder, source):
        self.folder, self.out, self.cache = folder, os.path.join(folder, "out"), os.path.join(folder, "cache")
        self.shapes = os.path.join(folder, "shapes")
        self.compile = ["k2c", "compile", source, "-o", self.out, *FLAGS, "--cache-dir"]
        self.pack = ["k2c", "pack", self.out, "--checkpoint", source]
        output(self.compile + [objects()])
        self.expected = output(logits(self.out))
        config = os.path.join(source, "config.json")
        output(["k2c", "compile", config, "-o", self.shapes, *FLAGS, "--cache-dir", objects()])
        self.seconds = {"warm": timed(self.compile + [objects()]), "cold": timed(self.compile + [self.cache])}
        self.seconds["replace"] = self.seconds["warm"]
        self.begin_pack()
        self.seconds["pack"] = timed(self.pack)

    def clear(self):
        for path in (self.out, self.out + ".partial", self.cache):
            shutil.rmtree(path, ignore_errors=True)

    def begin_pack(self):
        self.clear()
        shutil.copytree(self.shapes, self.out)

    def attempt(self, kind, rng):
        """One kill, and what follows; whether the command was killed before it ended."""
        if kind == "pack" or kind == "replace":
            self.begin_pack()
            command = self.pack if kind == "pack" else self.compile + [objects()]
        else:
            self.clear()
            command = self.compile + [self.cache if kind == "cold" else objects()]
        begin = time.monotonic()
        killed = killed_after(rng.uniform(0, self.seconds[kind]), command)
        if not killed:
            self.seconds[kind] = time.monotonic() - begin
        check_leftover(self.out, self.expected, kind not in ("pack", "replace"))
        output(command)
        output(["k2c", "verify", self.out])
        if output(logits(self.out)) != self.expected:
            raise Failure(f"{kind}: the repeated command made another bundle")
        if os.path.exists(self.out + ".partial"):
            raise Failure(f"{kind}: the repeated command left {self.out}.partial")
        return killed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(folder, args.source)
        for name, kinds in (("compile", ["warm", "replace", "cold", "replace"]), ("pack", ["pack"])):
            attempts = 0
            for moment in range(args.moments):
                while not scene.attempt(kinds[moment % len(kinds)], rng):  # it had ended
                    attempts += 1
                    if attempts > args.moments + 20:
                        raise Failure(f"{name} ends before it is killed")
            print(f"{name}: killed at {args.moments} moments, repeated each time")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
