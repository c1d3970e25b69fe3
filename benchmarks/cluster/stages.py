"""Decoding by two stages of layers on two hosts, against one rank."""
import json
from statistics import median

from hosts import Hosts
from launched import Launched

from .bench import both, probe

TITLE = "Pipeline stages over shaped links"
OVER_HOSTS = True
BATCHES = (1, 2, 4)
TEXT = """\
`bench --prefill 0 --decode 32 --batch B --context 64` of `benchmarks/checkpoints.py qwen3moe` in bf16: one rank of one
worker, and two hosts of one such rank in two stages (`--layout ep=1,dp=1,pp=2`), which have half of the layers each. A
sequence alone is in one stage at a time; from two on, both stages have work. Links are full in neither case: what
crosses is a row a token.

| link, Mbit/s | the probe | batch | one rank, tokens/s | two stages | ratio |
|---|---|---|---|---|---|
"""


def rates(run):
    """Tokens/s by batch; `run` gives what a command prints."""
    words = ("bench", "--prefill", "0", "--decode", "32", "--context", "64", "--repeat", "3", "--trust", "--json")
    return {batch: json.loads(run(*words, "--batch", str(batch)))["decode_tokens_per_s"] for batch in BATCHES}


def measure(bench):
    limits = ("--step-tokens", 64, "--max-sequences", max(BATCHES), "--max-context", 128)

    def point(_, mbit):
        checkpoint = bench.checkpoint("qwen3moe")
        one = bench.bundle(checkpoint, 1, 1, *limits)
        two = bench.bundle(checkpoint, 2, 1, *limits, "--layout", "ep=1,dp=1,pp=2", mbit=mbit)
        with Hosts(2, mbit=mbit or None) as hosts:
            return {"probe_mbit": probe(hosts), "one": rates(one.text),
                    "two": rates(Launched(two, hosts, "ucx").output)}

    bench.rounds("stages", bench.args.links, point)


def table(bench, points):
    text = TEXT
    for mbit in dict.fromkeys(point["key"] for point in points):
        of_link = [point for point in points if point["key"] == mbit]
        for batch in map(str, BATCHES):
            text += f"| {mbit or 'unshaped'} | {median(p['probe_mbit'] for p in of_link):.0f} | {batch} |"
            text += "".join(f" {both([p[side][batch] for p in of_link], 1, best=max)} |" for side in ("one", "two"))
            text += f" {median(p['two'][batch] / p['one'][batch] for p in of_link):.2f} |\n"
    return text
