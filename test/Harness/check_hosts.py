"""check_hosts.py CHECKPOINT RANKSxNODES LIBRARY CASE ..: a program whose ranks are processes on several hosts.

Hosts are network namespaces of this machine (hosts.py), joined by links of 200 Mbit/s. LIBRARY: openmpi or mpich, under
which every run is DIR/launch.sh --hosts, or ucx, with DIR/launch.sh --node on each host. CASE: bits (logits and routes
of one rank, byte by byte), pause (a link that is down for a while changes nothing), killed, stopped, unplugged,
interrupted (how the job ends; seconds are printed), differing (a bundle unlike that of rank 0), damaged (a blob),
missing (no bundle), starved (a host whose memory is too little), links (no more than what a link carries is found, and
k2c plans with it), traffic (what perplexity of a text sends, under each route limit: counted as in check_traffic.py,
and on the links hardly more), environments (over UCX, started by nothing but the variables of a LeaderWorkerSet, and of
torchrun: the tokens of one rank). Nothing may be left on any host.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from bundles import Failure, compiled, json_file, output
from check_invariance import draw
from check_ranks import LIMITS, culprit, expect, topology
from check_traffic import Program, read
from hosts import Hosts
from launched import PATIENCE, Launched

DEADLINE = 2
MEMORY = 128 << 20  # of a host that has too little; what starts its ranks takes some of it
LARGE = ("--step-tokens", "8192", "--max-sequences", "256", "--max-context", "256")
MBIT = 200  # of each link, in either direction
SHORT = ("generate", "--prompt-ids", "1,2,3", "-n", "8", "--ignore-eos", "--json")
ENDLESS = ("bench", "--prefill", "16", "--decode", "16", "--repeat", "1000000", "--json")


def bits(run, one):
    vocab = one.manifest["model"]["vocab"]
    ids = ",".join(map(str, draw(23, vocab, 1)))
    logits = ("logits", "--prompt-ids", ids, "--all", "--json")
    expect("logits", one.text(*logits), run.output(*logits))
    routes = ("routes", "--prompt-ids", ids, "--json")
    expect("routes", one.text(*routes), run.output(*routes))


def pause(run, one):
    vocab = one.manifest["model"]["vocab"]
    with json_file([draw(20, vocab, i) for i in range(2000)]) as prompts:
        batch = ("logits", "--batch-file", prompts, "--json")
        process = run.start(*batch)
        run.ranks(1)
        run.hosts.link(1, "down")
        time.sleep(4)
        run.hosts.link(1, "up")
        out, err = process.communicate(timeout=120)
        expect(f"logits behind a pause ({err})", one.text(*batch), out)


def killed(run, _):
    process = run.start(*ENDLESS)
    os.kill(run.ranks(1)[0], signal.SIGKILL)
    run.end(process, (3,))


def stopped(run, _):
    process = run.start(*ENDLESS, "--deadline", str(DEADLINE))
    os.kill(run.ranks(1)[0], signal.SIGSTOP)
    run.end(process, (124,), culprit(run.per_node))


def unplugged(run, _):
    process = run.start(*ENDLESS, "--deadline", "10")  # behind what the launcher gives a link
    run.ranks(1)
    run.hosts.link(1, "down")
    run.end(process, (3, 124))


def interrupted(run, _):
    process = run.start(*ENDLESS)
    run.ranks(1)
    os.killpg(process.pid, signal.SIGINT)
    run.end(process, (130,))


@contextlib.contextmanager
def changed(run, change):
    """The last host finds another folder in the bundle's place: a copy on which `change` has worked."""
    with tempfile.TemporaryDirectory(prefix="k2c-changed-") as folder:
        copy = os.path.join(folder, "copy")
        shutil.copytree(run.bundle.folder, copy)
        change(copy)
        run.hosts.mount(len(run.hosts.names) - 1, run.bundle.folder, copy)
        yield


def refused(run, change, text):
    with changed(run, change):
        run.end(run.start(*SHORT), (1,), re.escape(text))


def differing(run, _):
    def change(copy):
        with open(os.path.join(copy, "files.json")) as file:
            text = file.read()
        with open(os.path.join(copy, "files.json"), "w") as file:
            file.write(text.replace('"config.json"', '"confih.json"'))
        os.rename(os.path.join(copy, "config.json"), os.path.join(copy, "confih.json"))

    refused(run, change, f"(host {run.hosts.names[-1]}): files.json hashes to ")


def damaged(run, _):
    def change(copy):
        for name in os.listdir(os.path.join(copy, "weights")):
            if name.endswith(".json"):
                continue
            with open(os.path.join(copy, "weights", name), "r+b") as file:
                first = file.read(1)
                file.seek(0)
                file.write(bytes([first[0] ^ 1]))

    refused(run, change, " hash to ")


def missing(run, _):
    def change(copy):
        os.remove(os.path.join(copy, "manifest.json"))

    refused(run, change, "is not a bundle: it has no manifest.json")


def starved(run, _):
    run.hosts.limit_memory(len(run.hosts.names) - 1, MEMORY)
    run.end(run.start(*SHORT), (1,), rf"ranks of the bundle need .* allows .* = {MEMORY} bytes")


def links(run, _):
    with tempfile.NamedTemporaryFile(suffix=".yaml") as measured:
        run.output("links", "-o", measured.name)
        with open(measured.name) as file:
            text = file.read()
        config = os.path.join(run.bundle.folder, "config.json")
        output([shutil.which("k2c"), "plan", config, "--topology", measured.name])
    network = r'name: "network".*?bandwidth: {value: ([\d.]+) MB/s.*?efficiency: {value: ([\d.]+),'
    found = re.search(network, text, re.S)
    if not found:
        raise Failure(f"no rates of the network: {text}")
    rate, share = map(float, found.groups())
    if not 0 < rate < 1.05 * MBIT / 8 or not 0 < share <= 1:
        raise Failure(f"{rate} MB/s, of which ranks get {share}, over links of {MBIT} Mbit/s")
    print(f"{rate} MB/s of {MBIT / 8}, of which each of {run.per_node} ranks gets {share}")


def traffic(run, one):
    nodes, vocab = len(run.hosts.names), one.manifest["model"]["vocab"]
    for limit in ((), ("--route-limit", "2"), ("--route-limit", "1")):
        program = Program(one.source, run.per_node * nodes, nodes, limit, limits=())
        launched = Launched(program.bundle, run.hosts, run.library)
        with tempfile.TemporaryDirectory() as work, json_file([draw(8192, vocab, 1)]) as text:
            stats, counters = os.path.join(work, "stats.json"), os.path.join(work, "counters.json")
            before = run.hosts.sent()
            launched.output("perplexity", text, "--expert-stats", stats, "--counters", counters, "--json")
            sent = run.hosts.sent() - before
            placement = os.path.join(program.bundle.folder, "placement.json")
            program.check(stats, read(counters), placement, "--placement", placement)
            payload = read(counters)["tiers"]["network"]["payload_bytes"]
        if not payload <= sent <= 1.1 * payload + 4e6:
            raise Failure(f"{limit}: links carried {sent} bytes for {payload} of payload")
        print(f"{' '.join(limit) or 'no limit'}: {payload} bytes of payload, {sent} on the links")


def tokens(run, processes, *flags):
    """What (host, variables, words..) generate together: rank 0, which is the first, has it all."""
    over_links = {**os.environ, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [*SHORT, "--threads", "1", *flags]
    started = [run.hosts.run(host, [*words, *command], env={**over_links, **variables}, **piped)
               for host, variables, *words in processes]
    said = [process.communicate(timeout=PATIENCE) for process in started]
    if any(process.returncode for process in started) or any(out for out, _ in said[1:]):
        raise Failure(f"ranks end with {[process.returncode for process in started]}: {said}")
    return json.loads(said[0][0])["ids"]


def environments(run, one):
    expected = one.json(*SHORT[:-1])["ids"]
    names, per_node = run.hosts.names, run.per_node
    launch, program = (os.path.join(run.bundle.folder, name) for name in ("launch.sh", "run"))
    pods = [(i, {"LWS_WORKER_INDEX": str(i), "LWS_GROUP_SIZE": str(len(names)), "LWS_LEADER_ADDRESS": names[0],
                 "K2RT_JOB_TOKEN": "a job"}, launch, "--node", str(i)) for i in range(len(names))]
    expect("tokens of a LeaderWorkerSet", expected, tokens(run, pods))
    ranks = per_node * len(names)
    agents = [(rank // per_node, {"RANK": str(rank), "LOCAL_RANK": str(rank % per_node), "WORLD_SIZE": str(ranks),
                                  "LOCAL_WORLD_SIZE": str(per_node), "MASTER_ADDR": names[0], "MASTER_PORT": "29600",
                                  "TORCHELASTIC_RUN_ID": "a job"}, program) for rank in range(ranks)]
    expect("tokens of torchrun's ranks", expected, tokens(run, agents, "--transport", "ucx"))


CASES = (bits, pause, killed, stopped, unplugged, interrupted, differing, damaged, missing, starved, links, traffic,
         environments)


def main(checkpoint, shape, library, *cases):
    ranks, nodes = map(int, shape.split("x"))
    one = compiled(checkpoint, *LIMITS)
    for case in cases:
        limits = LARGE if case == "starved" else LIMITS
        several = compiled(checkpoint, "--topology", topology(ranks, nodes), *limits)
        with Hosts(nodes, ranks // nodes, mbit=MBIT) as hosts:
            dict((known.__name__, known) for known in CASES)[case](Launched(several, hosts, library), one)
        print(f"{case}: as it should be, with {library}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # lit ignores it, and so would all that is started here
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_hosts.py: {wrong}")
