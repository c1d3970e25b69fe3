"""watched.py COMMAND ARGUMENT...: runs a command whose standard error is a terminal until it shows its progress, and
interrupts it: the line must say what is left, and be erased. What it shows goes to the terminal alone."""
import os
import re
import signal
import subprocess
import sys

SHOWN = re.compile(rb"\r\x1b\[K\w+ +(\d+) % \((\d+) of (\d+) tokens\)(?:, about (\d+) (s|min|h) left)?\r")
ERASED = b"\r\x1b[K"

ours, terminal = os.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=terminal)
os.close(terminal)
said = b""
while not SHOWN.search(said):
    said += os.read(ours, 4096)
process.send_signal(signal.SIGINT)
printed, _ = process.communicate(timeout=60)
while True:
    try:
        more = os.read(ours, 4096)
    except OSError:  # the other end is closed
        break
    if not more:
        break
    said += more
share, done, total = map(int, SHOWN.search(said).groups()[:3])
assert total == 60000 and 0 < done < total and share == 100 * done // total, said
assert SHOWN.search(said).group(5) and int(SHOWN.search(said).group(4)) > 0, said
assert process.returncode == 130, process.returncode
assert ERASED in said[SHOWN.search(said).end() :], "the line is not erased"
assert ERASED not in printed, printed
