"""Starts a command, sends it a signal when it says that it runs, and prints what it says, its exit code, and whether
what it has started still runs.

usage: signalled.py SIGNAL process|group|terminal COMMAND ARGUMENT...
"""
import os
import pty
import signal
import subprocess
import sys
import time


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(name, target, *command):
    def start():  # a background job of a shell has interrupts ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()

    if target == "terminal":
        pid, master = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvp(command[0], command)
        output = os.fdopen(master, "rb", 0)
    else:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=start)
        pid, output = child.pid, child.stdout
    text = b""
    while b"runs as " not in text or not text.endswith(b"\n"):
        text += os.read(output.fileno(), 4096)
    started = int(text.split(b"runs as ")[1].split()[0])
    if target == "terminal":
        os.write(output.fileno(), b"\x03")
    else:
        (os.killpg if target == "group" else os.kill)(pid, signal.Signals[name])
    try:
        while more := os.read(output.fileno(), 4096):
            text += more
    except OSError:  # a terminal ends so
        pass
    exit_code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for _ in range(100):
        if not is_running(started):
            break
        time.sleep(0.05)
    left = "left" if is_running(started) else "nothing left"
    print(text.decode().replace("\r", "") + f"exit code {exit_code}, {left}")


main(*sys.argv[1:])
