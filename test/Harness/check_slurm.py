"""check_slurm.py CHECKPOINT RANKSxNODES: `sbatch slurm.sbatch` of a bundle gives the tokens of one rank.

A cluster of Slurm whose nodes are network namespaces (hosts.py), with daemons, keys and sockets of its own. Nothing of
it is left on any host.
"""
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time

from bundles import Failure, compiled
from check_ranks import LIMITS, expect, topology
from hosts import Hosts

PATIENCE = 40  # seconds for what takes a few on an idle machine
COMMAND = ("generate", "--prompt-ids", "1,2,3", "-n", "8", "--ignore-eos", "--json", "--threads", "1")
CONFIGURATION = """ClusterName=k2c
SlurmctldHost={first}(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpooldir={folder}/node-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeAddr=10.77.0.{number} NodeHostname={name} CPUs={cpus} RealMemory=1000"


class Slurm:
    """Its daemons on all hosts."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        self.variables = {**os.environ, "SLURM_CONF": os.path.join(folder, "slurm.conf"),
                          "OMPI_MCA_btl_tcp_if_include": "eth0"}

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def configure(self):
        nodes = "\n".join(NODE.format(name=name, number=i + 1, cpus=self.hosts.slots)
                          for i, name in enumerate(self.hosts.names))
        self.write("slurm.conf", CONFIGURATION.format(first=self.hosts.names[0], folder=self.folder, nodes=nodes,
                                                      names=",".join(self.hosts.names)))
        self.write("mpi.conf", f"PMIxCliTmpDirBase={self.folder}/pmix\n")
        self.write("cgroup.conf", "ConstrainCores=no\n")
        self.write("munge.key", secrets.token_hex(64))
        os.chmod(os.path.join(self.folder, "munge.key"), 0o600)
        for name in ("state", "pmix", *(f"node-{name}" for name in self.hosts.names)):
            os.mkdir(os.path.join(self.folder, name))

    def daemon(self, host, *words):
        return self.hosts.run(host, words, env=self.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self):
        self.configure()
        at = os.path.join(self.folder, "munge")
        self.daemon(0, "munged", "--foreground", "--force", "--key-file", at + ".key", "--socket", at + ".socket",
                    "--pid-file", at + ".pid", "--log-file", at + ".log", "--seed-file", at + ".seed")
        self.wait_for("munged does not start", lambda: os.path.exists(at + ".socket"))
        self.daemon(0, "slurmctld", "-D", "-c")
        for name in self.hosts.names:
            self.begin_node(name)
        self.wait_for("nodes do not come", lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle")

    def begin_node(self, name):
        """slurmd of a host. It sees the groups of processes that `ip netns exec` hides: without them it does not start.
        Files of PMIx are the host's own."""
        within = ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "--mount", "sh", "-c"]
        command = f"hostname {name} && mount -t tmpfs none {self.folder}/pmix && exec slurmd -D -N {name}"
        subprocess.Popen([*within, command], env=self.variables, start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, *words):
        return self.hosts.run(0, words, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).communicate(timeout=PATIENCE)[0].strip()

    def wait_for(self, otherwise, condition):
        limit = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > limit:
                raise Failure(f"{otherwise}: {self.logs()}")
            time.sleep(0.2)

    def logs(self):
        """The end of what daemons have logged."""
        said = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), errors="replace") as file:
                    said += f"\n{name}: " + "".join(file.readlines()[-5:])
        return said

    def tokens(self, bundle):
        """What the bundle's job generates."""
        output = os.path.join(self.folder, "job.out")
        script = os.path.join(bundle.folder, "slurm.sbatch")
        job = self.hosts.run(0, ["sbatch", "--wait", "--output", output, "--error", output + ".err", script, *COMMAND],
                             env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = job.communicate(timeout=PATIENCE)
        texts = []
        for path in (output, output + ".err"):
            with open(path) as file:
                texts.append(file.read())
        if job.returncode:
            raise Failure(f"exit {job.returncode}: {said} {texts} {self.logs()}")
        return json.loads(texts[0])["ids"]


def main(checkpoint, shape):
    ranks, nodes = map(int, shape.split("x"))
    several = compiled(checkpoint, "--topology", topology(ranks, nodes), *LIMITS)
    one = compiled(checkpoint, *LIMITS)
    with tempfile.TemporaryDirectory(prefix="k2c-slurm-") as folder, Hosts(nodes, ranks // nodes) as hosts:
        slurm = Slurm(hosts, folder)
        slurm.begin()
        expect("tokens of a job of Slurm", one.json(*COMMAND[:-3])["ids"], slurm.tokens(several))
        for pid in hosts.processes():
            os.kill(pid, 9)
        if not hosts.wait_for_end(PATIENCE):
            raise Failure("leaves processes behind")
    print("sbatch: the tokens of one rank")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_slurm.py: {wrong}")
