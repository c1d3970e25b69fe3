"""Flips a bit in each file of a bundle in turn; `k2c verify` must fail and name the file. Of blobs, one stands for all.

usage: flip_each.py BUNDLE
"""
import os
import subprocess
import sys


def files(bundle):
    blobs = 0
    for folder, _, names in os.walk(bundle):
        for name in sorted(names):
            blobs += name.endswith(".bin")
            if not name.endswith(".bin") or blobs == 1:
                yield os.path.join(folder, name)


def main():
    checked = 0
    for path in files(sys.argv[1]):
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)[0]
            for value in (byte ^ 1, byte):
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([value]))
                file.flush()
                if value == byte:
                    break
                done = subprocess.run(["k2c", "verify", sys.argv[1]], capture_output=True, text=True)
                if done.returncode != 1 or os.path.basename(path) not in done.stderr:
                    sys.exit(f"{path}: a flipped bit gave exit {done.returncode}: {done.stderr}{done.stdout}")
        checked += 1
    sys.exit(0 if checked >= 9 else f"only {checked} files")


main()
