"""Compiles and packs onto disks of several sizes, all too small: tmpfs, mounted in a namespace of this process.

usage: unshare -rm python full_disk.py CHECKPOINT OBJECTS FOLDER
"""
import os
import subprocess
import sys

checkpoint, objects, disk = sys.argv[1:]
FULL = "No space left on device"
F32 = ("--compute", "f32")


def mount(kilobytes):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", disk], check=True)


def unmount():
    subprocess.run(["umount", disk], check=True)


def k2c(*arguments):
    return subprocess.run(["k2c", *arguments], capture_output=True, text=True)


def expect_refusal(what, done, *parts):
    lines = done.stderr.splitlines()
    if done.returncode != 1 or len(lines) != 1 or not all(part in lines[0] for part in (FULL, disk, *parts)):
        sys.exit(f"{what}: exit {done.returncode}: {done.stderr}")
    print(f"{what}: {lines[0]}")


def expect_run_beside(kilobytes):
    """A cache that fills up while k2c compiles into it: the program runs from a temporary folder."""
    mount(kilobytes)
    os.environ["XDG_CACHE_HOME"] = os.path.abspath(disk + "/cache")
    done = k2c("run", checkpoint, *F32, "--", "generate", "--prompt-ids", "1,2", "-n", "2", "--ignore-eos")
    notes = done.stderr.splitlines()
    if done.returncode or len(done.stdout.split()) != 2 or not notes or FULL not in notes[0]:
        sys.exit(f"a cache of {kilobytes} KB: exit {done.returncode}: {done.stderr}")
    print(notes[0])
    unmount()


def main():
    config = os.path.join(checkpoint, "config.json")
    for kilobytes in (4, 16, 40, 160, 400, 2000, 3600):
        mount(kilobytes)
        done = k2c("compile", checkpoint, "-o", disk + "/out", *F32, "--cache-dir", objects)
        expect_refusal(f"compile, {kilobytes} KB", done)
        if os.path.exists(disk + "/out"):
            sys.exit("a bundle was left")
        unmount()
    mount(16000)
    shapes = k2c("compile", config, "-o", disk + "/shapes", *F32, "--cache-dir", objects)
    if shapes.returncode:
        sys.exit(shapes.stderr)
    with open(disk + "/rest", "wb", buffering=0) as rest:
        try:
            while True:
                rest.write(bytes(4096))
        except OSError:
            pass
    expect_refusal("form", k2c("compile", config, "-o", disk, "--emit", "model"), "model.mlir")
    expect_refusal("pack", k2c("pack", disk + "/shapes", "--checkpoint", checkpoint))
    done = k2c("compile", checkpoint, "-o", "out", *F32, "--cache-dir", disk + "/cache")
    note = done.stderr.splitlines()
    if done.returncode or len(note) != 1 or not note[0].startswith("k2c: note: ") or FULL not in note[0]:
        sys.exit(f"a full cache: exit {done.returncode}: {done.stderr}")
    print(note[0])
    os.remove(disk + "/rest")
    if k2c("verify", "out").returncode or k2c("pack", disk + "/shapes", "--checkpoint", checkpoint).returncode:
        sys.exit("the bundle beside a full cache, or the repeated pack, is not whole")
    unmount()
    for kilobytes in (16, 300, 3000):
        expect_run_beside(kilobytes)


main()
