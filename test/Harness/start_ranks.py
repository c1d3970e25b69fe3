"""start_ranks.py RANKS COMMAND ARGUMENT..: runs COMMAND once for each rank, as what a job without mpirun has.

Each process has RANK, WORLD_SIZE, MASTER_ADDR and a MASTER_PORT that is free. What they print comes as it is. The exit
code is that of the first rank that ends with another than 0; the others then have PATIENCE seconds to end.
"""
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 2


def free_port():
    """A port of this host on which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def job(ranks):
    """The variables of a job of its own, all but RANK."""
    return {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
            "K2RT_JOB_TOKEN": secrets.token_hex(8)}


def main(ranks, *command):
    variables = job(int(ranks))
    running = [subprocess.Popen(command, env={**variables, "RANK": str(rank)}) for rank in range(int(ranks))]
    code, limit = 0, None
    while running:
        for process in [one for one in running if one.poll() is not None]:
            running.remove(process)
            code = code or process.returncode
            limit = limit or (time.monotonic() + PATIENCE if code else None)
        if limit and time.monotonic() > limit:
            for process in running:
                process.send_signal(signal.SIGKILL)
                process.wait()
            break
        time.sleep(0.01)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(*sys.argv[1:])
