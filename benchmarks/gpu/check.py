"""Runs a packed folder's programs on a GPU and writes what it finds to a page: python3 check.py --help.

In this order, so that a check that is stopped has the most important rows: what the machine is; single instructions, on
the device and by the interpreter; tokens and logits of each program; memory of the device; the time to the first token;
compute-sanitizer; speed. Each program has a time limit of its own, and all have one.
"""
import argparse
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import probes
import speed
from machine import HERE, Failure, Machine
from page import Page
from program import Program, difference, first_difference

SMI = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,ecc.mode.current"

SLOWEST_LINK = 1e9  # bytes/s that disk and link give at least
STARTED = 60  # seconds in which a driver that works has started
SANITIZED, MEASURED, RESERVED = 2, 4, 150  # programs for compute-sanitizer and for speed, seconds for the latter


def describe(page, machine, facts):
    """Returns the device's compute capability; none: there is no device."""
    page.section("Machine", "", ["what", "is"])
    page.row("Machine", "date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))
    page.row("Machine", "programs", f"{facts['version']}, revision {facts['revision']}, packed {facts['date']} on "
             f"{facts['processor']}")
    page.row("Machine", "command", " ".join(["python3", os.path.basename(sys.argv[0]), *sys.argv[1:]]))
    try:
        printed = machine.output(["nvidia-smi", f"--query-gpu={SMI}", "--format=csv,noheader"], 20)[0]
        page.row("Machine", f"nvidia-smi, {SMI}", printed.strip())
    except (Failure, OSError) as error:
        page.row("Machine", "nvidia-smi", f"says nothing: {error}")
    try:
        gpu = json.loads(machine.python("driver.py", "facts", machine.library, machine.ordinal, limit=STARTED))
    except Failure as failure:
        page.finding(f"no device was reached: {machine.library}: {failure}")
        return None
    version, count, capability = gpu["version"], gpu["count"], gpu["capability"]
    page.row("Machine", "driver", f"{machine.driver}, CUDA {version // 1000}.{version % 1000 // 10}, {count} "
             f"device{'' if count == 1 else 's'}")
    page.row("Machine", f"device {machine.ordinal}", f"{gpu['name']}, compute capability {capability / 10}, "
             f"{gpu['multiprocessors']} multiprocessors at {gpu['clock_khz'] / 1000:.0f} MHz, memory of "
             f"{gpu['memory_bits']} bits at {gpu['memory_clock_khz'] / 1000:.0f} MHz")
    return capability


def check_instructions(page, machine, interpreter, capability):
    page.section("Instructions", "The same words to one instruction, on the device and by the interpreter of PTX. Any "
                 "NaN is the same; approximations may differ by the units of the last place that the ISA allows.",
                 ["instruction", "results", "other bits", "first of them: device, interpreter"])
    for name in probes.PROBES:
        if not probes.runs_on(name, capability):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                data = []
                for side, (library, ordinal) in enumerate(((machine.library, machine.ordinal), (interpreter, 0))):
                    path = os.path.join(folder, str(side))
                    machine.python("probes.py", name, library, ordinal, path, limit=30)
                    with open(path, "rb") as file:
                        data.append(file.read())
            count, others, first = probes.differences(name, *data)
            text = f"{first[0]}: {first[1]:08x}, {first[2]:08x}" if first else ""
            page.row("Instructions", name, count, others, text)
            if first:
                page.finding(f"device and interpreter disagree on {name}: {others} of {count}, word {text}")
        except Failure as failure:
            page.row("Instructions", name, "", "", str(failure))
            page.finding(f"{name}: {failure}")


def explain_difference(page, program, ids):
    """Where a device's bits part from the interpreter's: a finding of its own."""
    try:
        device, interpreter = program.hidden(ids), program.hidden(ids, driver="emulated", limit=120)
        if found := first_difference(device, interpreter):
            page.finding(f"{program.case['name']}: device and interpreter disagree first behind layer {found[0]}: "
                         f"{found[1]}")
        else:
            page.finding(f"{program.case['name']}: device and interpreter agree behind every layer, so the head's "
                         "kernels or the processor's reference are what differs")
    except Failure as failure:
        page.finding(f"{program.case['name']}: no layer could be compared: {failure}")


def check_program(page, program):
    case, is_same = program.case, True

    def row(what, check):
        begin = time.monotonic()
        try:
            text = check()
        except Failure as failure:
            text = str(failure)
        page.row("Programs", case["name"], what, text or "the same", time.monotonic() - begin)
        if text:
            page.finding(f"{case['name']}, {what}: {text}")
        return not text

    for number, prompt in enumerate(case["prompts"]):
        where = f"prompt of {len(prompt['ids'])}"
        row(f"{where}, {len(prompt['tokens'])} tokens",
            lambda: "" if (got := program.tokens(prompt, len(prompt["tokens"]))) == prompt["tokens"]
            else f"{got}, expected {prompt['tokens']}")
        chunk = ((), ("--chunk", 7), ("--chunk", 1))[number % 3]
        if not row(f"{where}, logits {' '.join(map(str, chunk)) or 'whole'}",
                   lambda: difference(program.logits(prompt["ids"], *chunk), program.reference(prompt["logits"]))):
            if is_same:
                explain_difference(page, program, prompt["ids"])
            is_same = False
    batch = case["batch"]
    row(f"{len(batch['ids'])} prompts together, logits",
        lambda: difference(program.batch(batch["ids"]), program.reference(batch["logits"])))


def check_programs(page, machine, programs):
    page.section("Programs", "Greedy tokens are the golden ones (with bf16 a processor's), logits have the bits of a "
                 "processor's program.", ["program", "what", "result", "s"])
    for program in programs:
        if machine.left() > 0:
            check_program(page, program)


def peak_bytes(machine, program, *arguments):
    """Bytes of the device while a program runs, its context included, and the program's seconds."""
    if machine.is_emulated:
        with tempfile.NamedTemporaryFile("r", suffix=".json") as calls:
            seconds = program.run(*arguments, environment={"K2C_EMULATED_CALLS": calls.name})[1]
            return max(json.load(calls)["peak_bytes"]), seconds
    watch = subprocess.Popen([sys.executable, os.path.join(HERE, "driver.py"), "watch", machine.library,
                              str(machine.ordinal)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        is_ready = select.select([watch.stdout], [], [], STARTED)[0]
        ready = watch.stdout.readline().split() if is_ready else ""
        if len(ready) != 2:
            raise Failure("the memory of the device cannot be watched")
        seconds = program.run(*arguments)[1]
        least = int(watch.communicate(timeout=20)[0].split()[0])
    finally:
        watch.kill()
    return int(ready[1]) - least, seconds


def check_memory(page, machine, programs):
    page.section("Memory of the device", "What `run info` says, and by how much less was free while the program ran.",
                 ["program", "info, bytes", "measured, bytes", "of info, %"])
    page.section("First token", "From the start of the process to its end behind one token: weights are hashed and "
                 "brought to the device, and the driver compiles PTX where there is no machine code.",
                 ["program", "bytes of weights", "s", "again, s"])
    for program in programs:
        name, ids = program.case["name"], ",".join(map(str, program.case["prompts"][0]["ids"]))
        one = ("generate", "--prompt-ids", ids, "-n", 1, "--ignore-eos")
        try:
            rank = program.json("info")["ranks"][0]
            peak, seconds = peak_bytes(machine, program, *one)
            page.row("Memory of the device", name, rank["device_bytes"], peak, 100 * peak / rank["device_bytes"])
            if not machine.is_emulated and not 0.99 <= peak / rank["device_bytes"] <= 1:
                page.finding(f"{name}: takes {peak} bytes of the device, info says {rank['device_bytes']}")
            weights = rank["owned"]["weights"]
            page.row("First token", name, weights, seconds, program.run(*one)[1])
            if not machine.is_emulated and seconds > 2 + weights / SLOWEST_LINK:
                page.finding(f"{name}: the first token came after {seconds:.2f} s, which is more than two seconds and "
                             f"{weights} bytes at {SLOWEST_LINK / 1e9:g} GB/s")
        except (Failure, subprocess.TimeoutExpired) as failure:
            page.finding(f"{name}, memory and first token: {failure}")


def check_sanitizer(page, machine, programs):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    page.section("compute-sanitizer", "", ["program", "tool", "result"])
    if machine.is_emulated or not os.path.exists(tool):
        page.row("compute-sanitizer", "", "", "not run: " + ("the driver is emulated" if machine.is_emulated
                                                             else "it is not installed"))
        return
    for program in programs[:SANITIZED]:
        ids = ",".join(map(str, program.case["prompts"][-1]["ids"]))
        for check in ("memcheck", "racecheck", "initcheck"):
            if machine.left() < RESERVED:
                return
            try:
                program.run("generate", "--prompt-ids", ids, "-n", 2, "--ignore-eos", limit=60,
                            before=(tool, "--tool", check, "--error-exitcode", 9))
                page.row("compute-sanitizer", program.case["name"], check, "no error")
            except Failure as failure:
                page.row("compute-sanitizer", program.case["name"], check, str(failure))
                page.finding(f"{program.case['name']}: compute-sanitizer {check}: {failure}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="libcuda.so.1", help="a file, or emulated (default: libcuda.so.1)")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("-o", "--output", default=os.path.join(HERE, "gpu-results.md"))
    parser.add_argument("--programs", help="comma-separated; all by default")
    return parser.parse_args(arguments)


def main(options):
    with open(os.path.join(HERE, "facts.json")) as file:
        facts = json.load(file)
    asked = options.programs.split(",") if options.programs else [case["name"] for case in facts["cases"]]
    cases = [case for case in facts["cases"] if case["name"] in asked]
    if unknown := set(asked) - {case["name"] for case in cases}:
        sys.exit(f"check.py: error: --programs {', '.join(sorted(unknown))}: choose from "
                 f"{', '.join(case['name'] for case in facts['cases'])}")
    interpreter = os.path.join(HERE, "common", "lib", "libk2c-cuda.so")
    library = interpreter if options.driver == "emulated" else options.driver
    machine, page = Machine(options.driver, library, options.device, 60 * options.minutes), Page(options.output)
    programs = [Program(machine, case, HERE) for case in cases]
    page.end("was stopped")  # what the page says unless it ends
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it has started, too
    capability = describe(page, machine, facts)
    if capability is None:
        page.end("found no device" if machine.left() > 0 else "ran out of time")
        return 3
    check_instructions(page, machine, interpreter, capability)
    check_programs(page, machine, programs)
    check_memory(page, machine, programs)
    check_sanitizer(page, machine, programs)
    speed.measure(page, machine, programs[:MEASURED])
    page.end("is complete" if machine.left() > 0 else "ran out of time")
    print(f"{options.output}: {len(page.findings)} findings")
    return 1 if page.findings else 0


if __name__ == "__main__":
    try:
        sys.exit(main(parse(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(130)
