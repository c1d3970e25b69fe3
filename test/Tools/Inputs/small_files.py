"""Runs a command that may write no file larger than LIMIT bytes, with no object cached before.

usage: small_files.py LIMIT COMMAND ARGUMENT...
"""
import resource
import signal
import subprocess
import sys

limit, command = int(sys.argv[1]), sys.argv[2:]


def restrict():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write fails, as it does on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


done = subprocess.run(command, preexec_fn=restrict, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(f"exit {done.returncode}: {done.stdout}", end="")
