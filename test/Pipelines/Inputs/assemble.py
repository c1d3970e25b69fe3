"""Assembles every .ll file of a folder with llvm-as. usage: assemble.py FOLDER"""
import pathlib
import subprocess
import sys

files = sorted(pathlib.Path(sys.argv[1]).glob("*.ll"))
for path in files:
    subprocess.run(["llvm-as", str(path), "-o", "/dev/null"], check=True)
print(len(files), "files assembled")
sys.exit(0 if len(files) > 1 else 1)
