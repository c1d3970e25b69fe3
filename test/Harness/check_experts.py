"""check_experts.py CHECKPOINT: experts are ranges that placements share, and that a program can do without.

Compiled one after another with one folder of blobs: the checkpoint; a copy whose experts are numbered otherwise, with
the rows of its routers; a copy of which one expert has another bit. Printed is what each brings into the folder. The
renumbered copy must choose the same experts by their new numbers and generate the same tokens; its logits need not be
the same bits, for numerics N5 adds experts up by their number.

Then a copy of the first bundle, whose index leaves out every expert that a prompt does not want, must give the same
logits without mapping these, and refuse the prompt as soon as it lacks one more.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from blocks import Tensors
from bundles import Failure, compile_into, output
from check_invariance import draw

EXPERT = re.compile(r"(.*\.experts\.)(\d+)(\..*)")
ROUTER = re.compile(r".*\.mlp\.gate\.(weight|e_score_correction_bias)")
TOKENS = 24


def renumber(tensors, order):
    """Expert e becomes what expert order[e] was."""
    old = dict(tensors.entries)
    for name, (dtype, shape, data) in old.items():
        if expert := EXPERT.fullmatch(name):
            before, number, behind = expert.groups()
            tensors.entries[name] = old[f"{before}{order[int(number)]}{behind}"]
        elif ROUTER.fullmatch(name):
            row = len(data) // len(order)
            rows = [data[old_number * row:(old_number + 1) * row] for old_number in order]
            tensors.entries[name] = (dtype, shape, bytearray().join(rows))


def ranges(bundle):
    """(slot, expert or None, range) of all that the index names; the range of an expert that is left out is None."""
    with open(os.path.join(bundle.folder, "weights/index.json")) as file:
        for slot in json.load(file)["slots"]:
            if "experts" not in slot:
                yield slot, None, {"offset": 0, **slot}
            for number, expert in enumerate(slot.get("experts", [])):
                yield slot, number, expert


def inode(bundle, file):
    return os.stat(os.path.join(bundle.folder, "weights", file)).st_ino


def compile_beside(store, name, folder, source):
    """Compiles, and prints what comes into the folder of blobs."""
    known = {entry.inode() for entry in os.scandir(store)}
    bundle = compile_into(folder, source, "--blob-store", store)
    found = {}
    for slot, number, part in ranges(bundle):
        if inode(bundle, part["file"]) not in known and slot["name"] != "rope":
            who = slot["name"] + ("" if number is None else f" {number}")
            found.setdefault(who, {})[part["file"], part["offset"]] = part["bytes"]
    bytes_there = sum(entry.stat().st_size for entry in os.scandir(store)
                      if entry.inode() not in known and entry.name.endswith(".bin"))
    named = {place: size for places in found.values() for place, size in places.items()}
    if sum(named.values()) != bytes_there:
        raise Failure(f"{name}: {bytes_there} bytes came, of which the index names {sum(named.values())}")
    if known:
        print(f"{name}: {bytes_there} bytes:", ", ".join(f"{len(places)} of {who}" for who, places in found.items()))
    return bundle


def chosen(bundle, ids):
    """Layer -> the experts of each token."""
    layers = bundle.json("routes", "--prompt-ids", ids)["layers"]
    return {int(layer): routes["experts"] for layer, routes in layers.items()}


def same_choice(first, second, order, ids):
    renumbered = {layer: [[order[expert] for expert in row] for row in rows]
                  for layer, rows in chosen(second, ids).items()}
    if renumbered != chosen(first, ids):
        raise Failure("the renumbered experts are chosen otherwise")
    prompt = [int(number) for number in ids.split(",")]
    if first.generate(prompt, 8)["ids"] != second.generate(prompt, 8)["ids"]:
        raise Failure("the renumbered experts generate other tokens")


def leave_out(bundle, wanted):
    """The index names the experts of `wanted`, layer -> numbers, and no others."""
    path = os.path.join(bundle.folder, "weights/index.json")
    with open(path) as file:
        index = json.load(file)
    for slot in index["slots"]:
        if "experts" in slot:
            slot["experts"] = [expert if number in wanted[slot["layer"]] else None
                               for number, expert in enumerate(slot["experts"])]
    os.unlink(path)  # the copy's own
    with open(path, "w") as file:
        json.dump(index, file)
    output(["k2c-relist", bundle.folder, "weights/index.json"])


def mapped_while_running(command):
    """What a command prints, and (file, begin, end) of the weights it has mapped while it waits for its reader."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        begin = run.stdout.read(1)
        with open(f"/proc/{run.pid}/maps") as maps:
            lines = [line.split() for line in maps if "/weights/" in line]
        text = begin + run.stdout.read()
    parts = []
    for addresses, _, offset, *_, path in lines:
        first, last = (int(address, 16) for address in addresses.split("-"))
        parts.append((os.path.basename(path), int(offset, 16), int(offset, 16) + last - first))
    return text.decode(), parts


def check_left_out(first, folder, ids):
    shutil.copytree(first.folder, folder)
    bundle = type(first)(folder)
    wanted = {layer: {expert for row in rows for expert in row} for layer, rows in chosen(first, ids).items()}
    absent = [part for slot, number, part in ranges(first)
              if number is not None and number not in wanted[slot["layer"]]]
    leave_out(bundle, wanted)
    command = ["logits", "--all", "--prompt-ids", ids, "--json", "--threads", "1"]
    text, parts = mapped_while_running([os.path.join(folder, "run"), *command])
    if text != first.text(*command):
        raise Failure("without the experts that it does not want, a prompt has other logits")
    there = sum(size for size in {(part["file"], part["offset"]): part["bytes"]
                                  for _, _, part in ranges(bundle) if part}.values())
    if sum(end - begin for _, begin, end in parts) != there:
        raise Failure(f"{parts} are mapped, the index names {there} bytes")
    for part in absent:
        if any(part["file"] == name and begin <= part["offset"] < end for name, begin, end in parts):
            raise Failure(f"{part} is mapped")
    print(f"{len(absent)} experts are not mapped")
    layer = min(wanted)
    lacking = min(wanted[layer])
    wanted[layer].remove(lacking)
    leave_out(bundle, wanted)
    refused = subprocess.run([os.path.join(folder, "run"), *command], stderr=subprocess.PIPE, text=True, check=False)
    print(f"without expert {lacking}: exit {refused.returncode}: {refused.stderr.strip()}")


def check(source):
    with tempfile.TemporaryDirectory() as work:
        store, tensors = os.path.join(work, "blobs"), Tensors(source)
        os.mkdir(store)
        experts = tensors.config["n_routed_experts"]
        order = [(5 * number + 3) % experts for number in range(experts)]
        first = compile_beside(store, "first", os.path.join(work, "first"), source)
        renumber(tensors, order)
        second = compile_beside(store, "renumbered", os.path.join(work, "second"),
                                tensors.write(os.path.join(work, "renumbered")))
        name = next(name for name in tensors.entries if re.fullmatch(r".*\.experts\.7\.down_proj\.weight", name))
        tensors.entries[name][2][0] ^= 1
        compile_beside(store, "one bit", os.path.join(work, "third"), tensors.write(os.path.join(work, "changed")))
        ids = ",".join(map(str, draw(TOKENS, first.manifest["model"]["vocab"], 31)))
        same_choice(first, second, order, ids)
        check_left_out(first, os.path.join(work, "part"), "5,6,7," * 40 + "5")


if __name__ == "__main__":
    try:
        check(sys.argv[1])
    except Failure as failure:
        sys.exit(f"check_experts.py: {failure}")
