"""Speed of programs, and beside it, in turns, how fast torch multiplies as many bytes of weights on the same device."""
import importlib.util

from machine import Failure

ROUNDS = 3
BATCHES = (1, 16)


def median(values):
    return sorted(values)[len(values) // 2]


def bench(program, batch, is_short):
    sizes = ("--prefill", 4, "--decode", 2, "--context", 2, "--repeat", 1) if is_short else ()
    return program.json("bench", "--batch", batch, *sizes, limit=60)


def torch_rate(machine, size):
    return float(machine.python("torch_rate.py", size, machine.ordinal, limit=60).split()[0])


def measure_program(page, machine, program, copy_rate):
    has_torch = not machine.is_emulated and importlib.util.find_spec("torch")
    for batch in BATCHES if not machine.is_emulated else BATCHES[:1]:
        decode, prefill, torch, size = [], [], [], 0
        for _ in range(1 if machine.is_emulated else ROUNDS):
            answer = bench(program, batch, machine.is_emulated)
            decode.append(answer["decode_tokens_per_s"])
            prefill.append(answer["prefill_tokens_per_s"])
            size = answer["bytes_per_token"]
            if batch == 1 and has_torch:
                try:
                    torch.append(torch_rate(machine, size))
                except Failure as failure:
                    page.finding(f"torch beside {program.case['name']}: {failure}")
                    has_torch = False
        rate = median(decode) / batch * size
        page.row("Speed", program.case["name"], batch, median(prefill), median(decode), rate,
                 100 * rate / copy_rate if copy_rate else "", median(torch) if torch else "")


def measure(page, machine, programs):
    text = ("`run bench`, medians. Bytes are those of weights and cache that a step of one token reads, times steps a "
            "second. torch: one product of an f32 matrix of as many bytes with a vector, in a graph")
    page.section("Speed", text + (". The driver is emulated: these are no figures of a GPU." if machine.is_emulated
                                  else "."),
                 ["program", "sequences", "prefill, tokens/s", "decode, tokens/s", "bytes/s",
                  "of copies within the device, %", "torch, bytes/s"])
    copy_rate = 0.0
    try:
        if not machine.is_emulated:
            copy_rate = float(machine.python("driver.py", "copy", machine.library, machine.ordinal, limit=60))
            page.row("Machine", "copies within the device's memory, bytes/s, read and written", copy_rate)
    except Failure as failure:
        page.finding(f"copies within the device: {failure}")
    for program in programs:
        try:
            measure_program(page, machine, program, copy_rate)
        except Failure as failure:
            page.row("Speed", program.case["name"], "", str(failure), "", "", "", "")
