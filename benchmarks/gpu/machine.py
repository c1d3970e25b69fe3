"""Programs of a check, each with a time limit of its own, and what is left of the time of all."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Failure(Exception):
    """What a program did wrong, in one line."""


class Machine:
    """`driver` is what --driver of a program takes, `library` the file that it is."""

    def __init__(self, driver, library, ordinal, seconds):
        self.driver, self.library, self.ordinal, self.end = driver, library, ordinal, time.monotonic() + seconds
        self.is_emulated = driver == "emulated"

    def left(self):
        return self.end - time.monotonic()

    def output(self, command, limit, **options):
        """What a command prints, and its seconds. It is ended with all that it started when `limit`, or the time that
        is left, has passed."""
        limit = min(limit, self.left())
        if limit <= 0:
            raise Failure("no time was left")
        begin = time.monotonic()
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, **options)
        try:
            printed, said = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise Failure(f"it had not ended after {limit:.0f} s") from None
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        if child.returncode:
            lines = said.strip().splitlines() or printed.strip().splitlines() or ["it says nothing"]
            raise Failure(f"exit code {child.returncode}: {lines[-1]}")
        return printed, time.monotonic() - begin

    def python(self, script, *arguments, limit):
        """What a script of this folder prints."""
        return self.output([sys.executable, os.path.join(HERE, script), *arguments], limit)[0]
