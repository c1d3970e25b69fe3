"""A bundle of several ranks that is started over the hosts of hosts.py, a rank on one processor."""
import os
import re
import subprocess
import time

from bundles import Failure
from loaded import have_loaded

PATIENCE = 40  # seconds for an end that takes 2 to 6 on an idle machine


class Launched:
    """The bundle, started over hosts. What runs on the first of them stands for the job."""

    def __init__(self, bundle, hosts, library):
        self.bundle, self.hosts, self.library = bundle, hosts, library
        self.per_node = bundle.manifest["topology"]["ranks"] // bundle.manifest["topology"]["nodes"]

    def start(self, *arguments):
        over_links = {**os.environ, "UCX_TLS": "tcp,self"}  # UCX would find the memory of this machine
        launch = [os.path.join(self.bundle.folder, "launch.sh"), "--interface", "eth0"]
        command = [*arguments, "--threads", "1"]
        if self.library == "ucx":
            over_links["MASTER_ADDR"] = self.hosts.names[0]
            for host in range(1, len(self.hosts.names)):
                self.hosts.run(host, [*launch, "--node", str(host), *command], env=over_links,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            launch += ["--node", "0"]
        else:
            launch += ["--hosts", self.hosts.file, "--agent", self.hosts.agent, "--mpi", self.library]
        words = [*launch, *command]
        return self.hosts.run(0, words, env=over_links, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def output(self, *arguments):
        return self.finish(self.start(*arguments))

    @staticmethod
    def finish(process):
        """What is left of its standard output; it must succeed."""
        out, err = process.communicate()
        if process.returncode:
            raise Failure(f"{' '.join(process.args)}\nexit {process.returncode}: {err.strip()}")
        return out

    def ranks(self, host):
        """Its processes on a host, once all ranks have met and loaded."""
        limit = time.monotonic() + 60
        while not have_loaded(self.bundle, self.hosts.processes(program="run")):
            if time.monotonic() > limit:
                raise Failure("ranks do not load")
            time.sleep(0.05)
        return self.hosts.processes(host, "run")

    def end(self, process, codes, text=""):
        """The process ends with one of these, says so, and nothing of the job is left on any host."""
        begin = time.monotonic()
        try:
            _, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"does not end: {text}") from None
        if not self.hosts.wait_for_end(PATIENCE):
            raise Failure(f"leaves {[_command(pid) for pid in self.hosts.processes()]} behind")
        took = time.monotonic() - begin
        if process.returncode not in codes or not re.search(text, err):
            raise Failure(f"exit {process.returncode}, expected {codes} and '{text}': {err.strip()}")
        print(f"exit {process.returncode} after {took:.1f} s: {' '.join(err.strip().splitlines()[-1:])}")


def _command(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().replace("\0", " ")[:120]
    except OSError:
        return f"{pid}, which has ended since"
