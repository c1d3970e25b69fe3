"""What others publish of the same exchanges, on GPUs, beside what this page measured: numbers to look at, not aims."""
from statistics import median

from . import dispatch

TITLE = "Published beside ours"
TEXT = """\
Published numbers are of other devices, links and models, so that shares of the link are what can be looked at side by
side. V1's low-latency kernels move 128 tokens of 7168 elements to 8 experts each, in FP8 there (a scale for 128
elements) and in bf16 back, a row for each choice: 7.6 and 14.7 MB, of which an exchange within one node has no network
to take. V2's README counts otherwise than V1's, and its numbers are above the 50 GB/s of a card. Ours are shares of the
socket's bandwidth: floor over exchange of the tables above, dispatch and combine together. EPLB's are tokens/s with it
over those without (SGLang's report on 96 H100s), ours loads, as placements are not timed here.

| published | dispatch, combine | of the link | here |
|---|---|---|---|
"""
LINK = 50e9             # bytes/s of a 400 Gbit/s card
TOKENS, CHOICES, HIDDEN = 128, 8, 7168
ROWS = TOKENS * CHOICES
THERE, BACK = ROWS * HIDDEN * (1 + 4 / 128), ROWS * HIDDEN * 2
V2 = {"8x2": (90, 81), "8x4": (61, 61)}     # GB/s
V1 = {"EP8": (77, 114), "EP64": (173, 314)} # us


def of_exchanges(points):
    """Share of the link by the limit of nodes."""
    shares = []
    for limit in dict.fromkeys(point["key"] for point in points):
        runs = [dispatch.summary(point) for point in points if point["key"] == limit]
        shares.append(f"M = {limit}: {median(run['floor_s'] / run['mean_s'] for run in runs):.2f}")
    return ", ".join(shares)


def of_placements(points):
    """Rows of the fullest rank over the mean, by how skewed the router is."""
    loads = []
    for share in dict.fromkeys(point["key"] for point in points):
        of_share = [point for point in points if point["key"] == share]
        linear, copies = (median(p[side]["load"] for p in of_share) for side in ("linear", "copies"))
        loads.append(f"{share}: {linear:.2f} to {copies:.2f}")
    return ", ".join(loads)


def table(found):
    """`found`: the points of all sections."""
    ours = of_exchanges(found["dispatch"]) if found["dispatch"] else ""
    loads = f"fullest rank over the mean, {of_placements(found['placement'])}" if found["placement"] else ""
    text = TEXT
    for name, rates in V2.items():
        there, back = (f"{rate * 1e9 / LINK:.2f}" for rate in rates)
        text += f"| DeepEP V2, EP {name} | {rates[0]}, {rates[1]} GB/s | {there}, {back} | {ours} |\n"
    for name, times in V1.items():
        shares = (size / (time * 1e-6) / LINK for size, time in zip((THERE, BACK), times))
        text += f"| DeepEP V1, {name} | {times[0]}, {times[1]} us |"
        text += f" {'within a node' if name == 'EP8' else ', '.join(f'{share:.2f}' for share in shares)} | {ours} |\n"
    return text + f"| EPLB | 1.49 x in prefill, 2.54 x in decoding | | {loads} |\n"
