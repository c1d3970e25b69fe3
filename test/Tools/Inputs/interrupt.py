"""Starts a command, waits until it is at work, interrupts it as Control-C does (its whole process group), and checks
that it ends with 128 and the signal's number, with no error, at most the word that it was interrupted, which is
printed, and with a trace that is whole JSON.

usage: interrupt.py SIGNAL stdout|file:PATTERN|writes:PATH TRACE|- COMMAND ARGUMENT...
at work: it printed something; a path of PATTERN exists; it begins to write the file PATH, where a lease keeps it until
it was interrupted, so that it cannot be done before
"""
import fcntl
import glob
import json
import os
import signal
import subprocess
import sys
import time

ending, sign, trace, command = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3], sys.argv[4:]
how, _, path = sign.partition(":")
if how == "writes":
    signal.signal(signal.SIGIO, lambda *_: None)  # the kernel's word that somebody waits, which fcntl says, too
    lease = os.open(path, os.O_RDONLY)
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def is_at_work():
    return bool(glob.glob(path)) if how == "file" else fcntl.fcntl(lease, fcntl.F_GETLEASE) == fcntl.F_UNLCK


process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
if how == "stdout":
    process.stdout.read(1)
else:
    while not is_at_work() and process.poll() is None:
        time.sleep(0.005)
os.killpg(process.pid, ending)
_, said = process.communicate(timeout=60)
if process.returncode != 128 + ending:
    sys.exit(f"exit code {process.returncode}, not {128 + ending}: {said.decode()}")
if said.decode().count("interrupted") > 1 or "error" in said.decode():
    sys.exit(f"said: {said.decode()}")
print(said.decode(), end="")
if trace != "-":
    with open(trace) as file:
        assert json.load(file)["traceEvents"], "the trace is empty"
