"""Starts `k2c run` where no cache can be written, sends a signal to k2c alone while it compiles or while its program
runs, and checks that both end and that the temporary folder is gone.

usage: ended.py SIGNAL compiling|running TMPDIR COMMAND ARGUMENT...
"""
import glob
import os
import signal
import subprocess
import sys
import time

name, when, folder, command = sys.argv[1], sys.argv[2], os.path.realpath(sys.argv[3]), sys.argv[4:]


def programs():
    """Processes whose program lies in the folder."""
    return [link for link in glob.glob("/proc/[0-9]*/exe") if target(link).startswith(folder)]


def target(link):
    try:
        return os.readlink(link)
    except OSError:  # it has ended, or is another user's
        return ""


def wait(condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit("nothing happens")
        time.sleep(0.005)


environment = dict(os.environ, XDG_CACHE_HOME="/proc/nowhere", TMPDIR=folder)
process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wait(programs if when == "running" else lambda: os.listdir(folder))
process.send_signal(signal.Signals[name])
code = process.wait(timeout=60)
if os.listdir(folder) or programs():
    sys.exit(f"left: {os.listdir(folder)}, {programs()}")
print(f"{name} while {when}: exit code {code}")
