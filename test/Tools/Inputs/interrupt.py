"""Starts a command, waits until it is at work, interrupts it as Control-C does (its whole process group), and checks
that it ends with 130, with no error, at most the word that it was interrupted, which is printed, and with a trace that
is whole JSON.

usage: interrupt.py stdout|file:PATH TRACE|- COMMAND ARGUMENT...     at work: it printed something; PATH exists
"""
import json
import os
import signal
import subprocess
import sys
import time

sign, trace, command = sys.argv[1], sys.argv[2], sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
if sign == "stdout":
    process.stdout.read(1)
else:
    while not os.path.exists(sign[len("file:"):]) and process.poll() is None:
        time.sleep(0.005)
os.killpg(process.pid, signal.SIGINT)
_, said = process.communicate(timeout=60)
if process.returncode != 130:
    sys.exit(f"exit code {process.returncode}, not 130: {said.decode()}")
if said.decode().count("interrupted") > 1 or "error" in said.decode():
    sys.exit(f"said: {said.decode()}")
print(said.decode(), end="")
if trace != "-":
    with open(trace) as file:
        assert json.load(file)["traceEvents"], "the trace is empty"
