"""terminal.py COMMAND ARGUMENT...: runs a command whose standard error is a terminal, and prints what it shows there;
its exit code is the command's."""
import os
import subprocess
import sys

ours, terminal = os.openpty()
process = subprocess.Popen(sys.argv[1:], stderr=terminal)
os.close(terminal)
try:
    while shown := os.read(ours, 4096):
        sys.stdout.buffer.write(shown.replace(b"\r", b"\n"))
except OSError:  # the other end is closed
    pass
sys.exit(process.wait())
