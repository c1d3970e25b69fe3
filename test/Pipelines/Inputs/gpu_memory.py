"""gpu_memory.py BUNDLE: what the compiler says that a program takes of its GPU is what `info` says of the program."""

import json
import subprocess
import sys


def main(bundle):
    info = json.loads(subprocess.run([f"{bundle}/run", "info", "--json"], check=True, capture_output=True).stdout)
    with open(f"{bundle}/manifest.json") as file:
        manifest = json.load(file)
    rank = info["ranks"][0]
    stated, taken = manifest["predicted"]["peak_bytes"], rank["device_bytes"]
    if stated != taken or taken != sum(rank["owned"].values()) + rank["reserve_bytes"]:
        sys.exit(f"{bundle}: the manifest states {stated} bytes of the GPU, info {taken}")


main(*sys.argv[1:])
