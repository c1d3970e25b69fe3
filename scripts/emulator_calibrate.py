"""emulator_calibrate.py FOLDER: launches the kernels that FOLDER describes in lib/Ptx, with races looked for, and
compares what they leave with what was expected. emulator-calibrate.sh says how, docs/Emulator.md what a description
holds.
"""
import argparse
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# Types of buffers: how a number is packed; f32 cut to its upper half is bf16.
FORMATS = {
    "f32": "f", "f64": "d", "f16": "e", "bf16": "H", "u8": "B", "e4m3": "B", "e5m2": "B", "u16": "H", "s16": "h",
    "u32": "I", "s32": "i", "u64": "Q", "s64": "q",
}  # fmt: skip


class Wrong(Exception):
    """A kernel is not what its description says; its text is the reason."""


def packed(type_name, values):
    if type_name == "bf16":
        values = [struct.unpack("<I", struct.pack("<f", value))[0] + 0x8000 >> 16 for value in values]
    return struct.pack(f"<{len(values)}{FORMATS[type_name]}", *values)


def unpacked(type_name, data):
    values = list(struct.unpack(f"<{len(data) // struct.calcsize(FORMATS[type_name])}{FORMATS[type_name]}", data))
    if type_name == "bf16":
        values = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    return values


def filled(buffer, draw):
    """The numbers that a buffer begins with; None: it is not written."""
    count, fill = math.prod(buffer["shape"]), buffer.get("fill", "none")
    if isinstance(fill, list):
        return [fill[i % len(fill)] for i in range(count)]
    if fill == "normal":
        return [draw.gauss(0, 1) for _ in range(count)]
    if fill == "index":
        return list(range(count))
    if fill == "bytes":  # of fp8: none of them is no number
        return [value for value in (draw.randrange(256) for _ in range(8 * count)) if value & 0x7C != 0x7C][:count]
    if fill == "zeros":
        return [0] * count
    if fill != "none":
        raise Wrong(f"a buffer cannot be filled with '{fill}'")
    return None


def launch_of(description, folder, seed):
    """The lines of run-ptx, with the contents of buffers in `folder`."""
    draw = random.Random(seed)
    lines = ["entry " + description["entry"]]
    for key in ("grid", "block", "cluster"):
        if key in description:
            lines.append(f"{key} " + " ".join(str(n) for n in (list(description[key]) + [1, 1])[:3]))
    lines += [f"shared {description.get('shared', 0)}", f"limit {description.get('limit', 1 << 26)}"]
    for name, buffer in description["buffers"].items():
        values = filled(buffer, draw)
        if values is not None:
            (folder / f"{name}.bin").write_bytes(packed(buffer["type"], values))
        count = math.prod(buffer["shape"])
        lines.append(f"buffer {name} {buffer['type']} {count} {'none' if values is None else 'file'}")
    for argument in description["arguments"]:
        if isinstance(argument, str):
            lines.append(f"give {argument}")
        elif "map" in argument:
            extents = description["buffers"][argument["map"]]["shape"][::-1]
            box = argument["box"][::-1]
            numbers = [argument.get("swizzle", 0), len(box), *extents, *box]
            lines.append(f"map {argument['map']} " + " ".join(map(str, numbers)))
        else:
            lines += [f"{kind} {value}" for kind, value in argument.items()]
    return "\n".join(lines) + "\n"


def expected(description, source, folder):
    """What each output has to hold: numbers in the description, a file, or what the reference program writes."""
    outputs = description["outputs"]
    reference = source.with_suffix(".reference.c")
    if reference.exists():
        program = folder / "reference"
        subprocess.run(["cc", "-O2", "-o", program, reference, "-lm"], check=True)
        subprocess.run([program], cwd=folder, check=True)
    for name, output in outputs.items():
        want = output.get("expect")
        if isinstance(want, list):
            yield name, [want[i % len(want)] for i in range(math.prod(description["buffers"][name]["shape"]))]
            continue
        path = source.parent / want if want else folder / f"{name}.expected"
        if not path.exists():
            raise Wrong(f"nothing says what '{name}' holds: give 'expect', or let {reference.name} write {path.name}")
        yield name, unpacked(description["buffers"][name]["type"], path.read_bytes())


def compare(name, got, want, tolerance):
    """The greatest error, relative to the greatest number that is expected."""
    if len(got) != len(want):
        raise Wrong(f"'{name}' has {len(got)} numbers, and {len(want)} are expected")
    scale = max((abs(value) for value in want), default=0) or 1
    pairs = enumerate(zip(got, want))
    worst, at = max((abs(one - other) / scale if one == one else math.inf, i) for i, (one, other) in pairs)
    if worst > tolerance:
        limit = f"error {worst:.1e}, up to {tolerance:.1e}"
        raise Wrong(f"'{name}' has {got[at]:.9g} at {at}, and {want[at]:.9g} is expected ({limit})")
    return worst


def ptx_of(source, options, folder):
    """The text of a kernel; None: there is no nvcc."""
    if source.with_suffix(".ptx").exists():
        return source.with_suffix(".ptx")
    if not options.nvcc:
        return None
    target = folder / "kernel.ptx"
    flags = ["-ptx", f"-arch={options.arch}", *options.nvcc_flags.split(), "-o", target]
    command = [options.nvcc, *flags, source.with_suffix(".cu")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong("nvcc: " + (done.stderr.strip().splitlines() or ["failed"])[0])
    return target


def run(source, options):
    """What is said of a kernel that is right; None: it is skipped."""
    description = json.loads(source.read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = ptx_of(source, options, folder)
        if text is None:
            return None
        launch = folder / "launch"
        launch.write_text(launch_of(description, folder, description.get("seed", 1)))
        program = Path(options.build) / "unit/run-ptx"
        command = [program, text, launch, str(options.seeds), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout.splitlines()
        bad = [line for line in said if not line.startswith("left ")]
        if bad or len(said) != options.seeds:
            raise Wrong((bad or [f"run-ptx ended with {done.returncode}"])[0].replace(str(folder) + "/", ""))
        if len(set(said)) != 1:
            raise Wrong("what it leaves depends on the order in which warps run")
        worst = 0
        for output, want in expected(description, source, folder):
            got = unpacked(description["buffers"][output]["type"], (folder / f"{output}.out").read_bytes())
            worst = max(worst, compare(output, got, want, description["outputs"][output].get("tolerance", 0)))
        return f"{options.seeds} seeds, error {worst:.1e}"


def parsed():
    usage = (Path(__file__).parent / "emulator-calibrate.sh").read_text().split("\n")[1:7]
    parser = argparse.ArgumentParser(
        prog="emulator-calibrate.sh",
        description="\n".join(line.removeprefix("# ") for line in usage),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", nargs="*", help="names; default: all that the folder describes")
    parser.add_argument("--build", default="build", help="a build folder with unit/run-ptx (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="schedules of each kernel (default: %(default)s)")
    parser.add_argument("--arch", default="sm_90a", help="of nvcc (default: %(default)s)")
    parser.add_argument("--nvcc-flags", default="-std=c++17", help="of nvcc, beside -ptx (default: %(default)s)")
    options = parser.parse_args()
    asked = os.environ.get("NVCC")
    options.nvcc = shutil.which(asked or "nvcc")
    if not options.nvcc and not asked:
        options.nvcc = shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not (Path(options.build) / "unit/run-ptx").exists():
        parser.error(f"{options.build} has no unit/run-ptx; build it: ninja -C {options.build} run-ptx")
    return options


def main():
    options = parsed()
    sources = sorted(options.folder.glob("*.json"))
    sources = [path for path in sources if not options.kernels or path.stem in options.kernels]
    right = wrong = skipped = 0
    for source in sources:
        try:
            said = run(source, options)
            right, skipped = right + (said is not None), skipped + (said is None)
            print(f"{source.stem}: " + (f"right, {said}" if said else "skipped: there is no nvcc"))
        except (Wrong, subprocess.CalledProcessError) as reason:
            wrong += 1
            print(f"{source.stem}: WRONG: {reason}")
        except (KeyError, TypeError, ValueError, struct.error) as problem:
            wrong += 1
            print(f"{source.stem}: WRONG: its description: {type(problem).__name__} {problem}")
    print(f"{right} right, {wrong} wrong, {skipped} skipped")
    return 1 if wrong or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
