"""Anonymous memory of each rank against the memory certificate."""
import time

from check_certificate import sample
from hosts import Hosts
from launched import Launched

TITLE = "Memory"
OVER_HOSTS = True
NODES, PER_NODE = 4, 2
AIM = 0.99
PROMPTS_A_RANK, CONTEXT, NEW_TOKENS = 4, 256, 8
TEXT = """\
`generate --batch-file FILE -n {new}` of {nodes} hosts of {per_node} ranks over UCX, of `benchmarks/checkpoints.py
qwen3moe` in bf16, with {prompts} sequences a rank that fill the context of {context} tokens. Anonymous memory
(`/proc/PID/smaps_rollup`, its peak in all rounds, of the rank that has most and the one that has least) against
`info --transport ucx --json`: owned and reserve, weights and code aside, which are mapped files. The aim is never
above, and at least {aim} of it.

| rank | anonymous, MB | certificate, MB | share | samples | aim {aim} to 1 |
|---|---|---|---|---|---|
"""


def rank_of(pid):
    """The rank that launch.sh gave a process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/environ") as file:
            variables = dict(word.partition("=")[::2] for word in file.read().split("\0"))
        return int(variables["RANK"])
    except (OSError, KeyError):
        return None


def peaks(hosts, process):
    """Of each rank: the most anonymous bytes, and how often it was looked at."""
    found, known = {}, {}
    while process.poll() is None:
        if len(known) < NODES * PER_NODE:
            known = {pid: rank_of(pid) for pid in hosts.processes(program="run")}
        for pid, rank in known.items():
            now = sample(pid)
            if now and rank is not None:
                peak, samples = found.get(rank, (0, 0))
                found[rank] = max(peak, now[0]), samples + 1
        time.sleep(0.02)
    return found


def measure(bench):
    limits = ("--step-tokens", 512, "--max-sequences", PROMPTS_A_RANK, "--max-context", CONTEXT)

    def point(number, _):
        bundle = bench.bundle(bench.checkpoint("qwen3moe"), NODES, PER_NODE, *limits)
        stated = bundle.json("info", "--transport", "ucx")["ranks"]
        count = NODES * PER_NODE * PROMPTS_A_RANK
        with Hosts(NODES, PER_NODE) as hosts, bench.prompts(bundle, count, CONTEXT - NEW_TOKENS, number) as prompts:
            run = Launched(bundle, hosts, "ucx")
            process = run.start("generate", "--batch-file", prompts, "-n", str(NEW_TOKENS), "--ignore-eos", "--trust",
                                "--json")
            taken = peaks(hosts, process)
            run.finish(process)
        files = [rank["owned"]["weights"] + rank["owned"]["code"] for rank in stated]
        certified = [sum(rank["owned"].values()) + rank["reserve_bytes"] - of for rank, of in zip(stated, files)]
        return {"ranks": [[rank, *taken[rank], certified[rank]] for rank in sorted(taken)]}

    bench.rounds("memory", ("all",), point)


def table(bench, points):
    text = TEXT.format(new=NEW_TOKENS, nodes=NODES, per_node=PER_NODE, prompts=PROMPTS_A_RANK, context=CONTEXT, aim=AIM)
    peak = {}
    for rank, anonymous, samples, certified in (line for point in points for line in point["ranks"]):
        before = peak.get(rank, (0, 0, certified))
        peak[rank] = max(before[0], anonymous), before[1] + samples, certified
    by_share = sorted(peak, key=lambda rank: peak[rank][0] / peak[rank][2])
    for rank in dict.fromkeys((by_share[-1], by_share[0])):
        anonymous, samples, certified = peak[rank]
        share = anonymous / certified
        text += f"| {rank} | {anonymous / 1e6:.1f} | {certified / 1e6:.1f} | {share:.4f} | {samples} |"
        text += f" {'met' if AIM <= share <= 1 else 'missed'} |\n"
    return text
