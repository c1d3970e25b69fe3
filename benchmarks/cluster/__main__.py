"""Measures programs of several ranks over links of a known speed, and writes docs/cluster-results.md.

Hosts are network namespaces of this machine, joined by a switch whose ports carry so many Mbit/s
(test/Harness/hosts.py). What is compared takes turns, each in a run of its own, round by round; medians count. Beside
each run a probe sends bytes from one host to another, so that the page says what the links gave. Results are lines of
JSON in the work folder; a second run goes on. See scripts/bench-cluster.sh --help.
"""
import argparse
import ctypes.util
import datetime
import os
import sys
import textwrap

import measure.engines
from bundles import Failure
from suites import can_make_hosts

from . import dispatch, first_token, memory, overlap, placement, published, rpc, stages, swap
from .bench import Bench

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECTIONS = {"overlap": overlap, "dispatch": dispatch, "placement": placement, "swap": swap, "stages": stages,
            "memory": memory, "first-token": first_token, "rpc": rpc}
EXAMPLES = """examples:
  scripts/bench-cluster.sh                              all sections
  scripts/bench-cluster.sh --only dispatch,placement    two of them
  scripts/bench-cluster.sh --rounds 5 --links 200,1000  other links for overlap and stages
  scripts/bench-cluster.sh --only rpc --peers           llama.cpp beside k2c on two hosts; installs it first
  scripts/bench-cluster.sh --page-only                  writes the page again from the results there are
"""
PAGE = """# Ranks over links, measured

Written by scripts/bench-cluster.sh on {date}, on {processors} processors of {cpu}. Hosts are network namespaces of this
machine; ranks have one worker and exchange rows by UCX over TCP, so that the communication threads and the kernel's TCP
share the processors with the workers. Medians of rounds ({rounds}), the best behind them; ratios
are those of the runs of one round. An aim stands beside what was measured, met or missed.
"""


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench-cluster.sh", epilog=EXAMPLES, allow_abbrev=False,
                                     description="Measures ranks over links of a known speed and tells it on a page.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", default=",".join(SECTIONS), help=f"sections to measure (default: all, {','.join(SECTIONS)})")
    add("--rounds", type=int, default=5, help="times each point is measured (default 5)")
    add("--links", default="400,1000,0", help="Mbit/s of a host's link in either direction, of overlap and stages; "
                                              "0: what it can (default 400,1000,0)")
    add("--prefill", type=int, default=512, help="tokens of the prompt of each rank, of overlap and dispatch")
    add("--small", action="store_true", help="checkpoints of some 300 KB, to try the script")
    add("--peers", action="store_true", help="install llama.cpp first, for rpc")
    measure.engines.peer_options(add)
    add("--work", default=os.path.join(ROOT, "build", "bench-cluster"), help="results, bundles, checkpoints")
    add("--page", default=os.path.join(ROOT, "docs", "cluster-results.md"), help="the page")
    add("--page-only", action="store_true", help="write the page from the results there are")
    add("--tools", default=os.path.join(ROOT, "build", "bin"), help="folder of k2c and k2rt-run (default: built here)")
    args = parser.parse_args()
    args.links = [int(link) for link in args.links.split(",")]
    args.only = args.only.split(",")
    for name in args.only:
        if name not in SECTIONS:
            parser.error(f"--only {name}: choose from {', '.join(SECTIONS)}")
    return args


def missing_for_hosts():
    """What is not there for sections over hosts, in words."""
    if not can_make_hosts():
        return "no network namespaces: needs root and iproute2"
    return None if ctypes.util.find_library("ucp") else "no UCX: install libucx-dev and build again"


def measure_sections(bench):
    """The sections that failed; the others go on."""
    missing, failed = missing_for_hosts(), []
    for name in bench.args.only:
        if SECTIONS[name].OVER_HOSTS and missing:
            bench.say(f"{name} is left out: {missing}")
            continue
        try:
            SECTIONS[name].measure(bench)
        except (Failure, measure.Failure) as wrong:
            bench.say(f"{name}: {wrong}")
            failed.append(name)
    return failed


def wrapped(text):
    """Prose in lines of 120 columns; headings and tables as they are."""
    fill = textwrap.TextWrapper(120, break_long_words=False, break_on_hyphens=False).fill
    parts = text.strip().split("\n\n")
    return "\n\n".join(part if part.startswith(("#", "|")) else fill(part) for part in parts) + "\n"


def write_page(bench):
    """All sections that have results, whether this run measured them or one before."""
    points = {name: bench.read(name) for name in SECTIONS}
    if not any(points.values()):
        raise Failure(f"{bench.results}: nothing was measured with these settings")
    with open("/proc/cpuinfo") as file:
        cpu = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    counts = ", ".join(f"{name} {1 + max(p['round'] for p in found)}" for name, found in points.items() if found)
    text = PAGE.format(date=datetime.date.today(), processors=os.cpu_count(), cpu=cpu, rounds=counts)
    for name, found in points.items():
        if found:
            text += f"\n## {SECTIONS[name].TITLE}\n\n{SECTIONS[name].table(bench, found)}"
    text += f"\n## {published.TITLE}\n\n{published.table(points)}"
    with open(bench.args.page, "w") as file:
        file.write(wrapped(text))
    bench.say(f"wrote {bench.args.page}")


def main():
    args = arguments()
    try:
        bench = Bench(args)
        failed = [] if args.page_only else measure_sections(bench)
        write_page(bench)
        if failed:
            raise Failure(f"{', '.join(failed)}: stopped; the same command goes on with what is there")
    except Failure as wrong:
        sys.exit(f"bench-cluster: error: {wrong}")


main()
