"""Two halves of a step against whole steps, over links of several speeds."""
import json
from statistics import median

from hosts import Hosts
from launched import Launched

from .bench import both, probe

TITLE = "Two halves of a step"
OVER_HOSTS = True
AIM = 0.8
MIN_ADDED = 0.05
SIDES = {"halves": ("--layout", "ep=2,dp=2,overlap=1"), "whole": ("--without", "overlap-communication")}
TEXT = """\
`bench --prompts 2 --prefill {prefill}` of two hosts of one rank, a prompt on each rank in one step, of
`benchmarks/checkpoints.py dsv3` in bf16. hidden: of what shaped links add to whole steps, at most all that an unshaped
step takes, the share that halves hide, of rounds in which they add {added:.0%} or more. The aim is {aim}.

| link, Mbit/s | the probe | whole steps | two halves | ratio | hidden | aim {aim} |
|---|---|---|---|---|---|---|
"""


def measure(bench):
    prefill = bench.args.prefill
    limits = ("--step-tokens", prefill, "--max-sequences", 4, "--max-context", 2 * prefill)
    words = ("bench", "--prompts", "2", "--prefill", str(prefill), "--decode", "1", "--repeat", "3", "--trust",
             "--json")

    def point(number, mbit):
        """Seconds of both sides over one link, the one first that was last in the round before."""
        found = {}
        sides = {side: bench.bundle(bench.checkpoint("dsv3"), 2, 1, *limits, *options, mbit=mbit)
                 for side, options in SIDES.items()}
        with Hosts(2, mbit=mbit or None) as hosts:
            found["probe_mbit"] = probe(hosts)
            for side in SIDES if number % 2 else reversed(SIDES):
                said = json.loads(Launched(sides[side], hosts, "ucx").output(*words))
                found[side] = 2 * prefill / said["prefill"]["median"]
        return found

    bench.rounds("overlap", bench.args.links, point)


def hidden(points, free):
    """By round: of what the link adds to whole steps, the share that is hidden. Little that is added is noise."""
    for point in points:
        unshaped = free.get(point["round"])
        if unshaped and point["key"] and point["whole"] - unshaped > MIN_ADDED * unshaped:
            yield (point["whole"] - point["halves"]) / min(point["whole"] - unshaped, unshaped)


def table(bench, points):
    text = TEXT.format(prefill=bench.args.prefill, aim=AIM, added=MIN_ADDED)
    free = {point["round"]: point["whole"] for point in points if point["key"] == 0}
    for mbit in dict.fromkeys(point["key"] for point in points):
        of_link = [point for point in points if point["key"] == mbit]
        text += f"| {mbit or 'unshaped'} | {median(p['probe_mbit'] for p in of_link):.0f} |"
        text += "".join(f" {both([p[side] for p in of_link], 3, ' s')} |" for side in ("whole", "halves"))
        text += f" {median(p['whole'] / p['halves'] for p in of_link):.2f} |"
        shares = list(hidden(of_link, free))
        text += f" {median(shares):.2f} | {'met' if median(shares) >= AIM else 'missed'} |\n" if shares else " | |\n"
    return text
