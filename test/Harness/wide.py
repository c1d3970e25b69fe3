"""Checkpoints that tensor-parallel ranks divide: those of benchmarks/checkpoints.py --wide, written once."""
import fcntl
import os
import sys

from bundles import objects

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks"))
import checkpoints


def wide(kind):
    """The folder of the wide checkpoint `kind`."""
    folder = os.path.join(os.path.dirname(objects()), "checkpoints", "wide-" + kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "config.json")):
            checkpoints.write(kind, folder, checkpoints.WIDE)
    return folder


def checkpoint(name):
    """`name` itself, or of "wide-KIND" the checkpoint."""
    return wide(name.removeprefix("wide-")) if name.startswith("wide-") else name
