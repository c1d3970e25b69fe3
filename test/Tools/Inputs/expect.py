"""Runs a command and prints its stderr; fails unless its exit code is the one expected, and a failure one line.

usage: expect.py CODE COMMAND ARGUMENT...
"""
import subprocess
import sys

code, command = int(sys.argv[1]), sys.argv[2:]
done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
sys.stdout.write(done.stderr)
if done.returncode != code:
    sys.exit(print(f"exit code {done.returncode}, not {code}") or 1)
if code == 1 and done.stderr.count("\n") != 1:
    sys.exit(print("a user's mistake is one line") or 1)
