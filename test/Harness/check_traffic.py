"""check_traffic.py CHECKPOINT RANKS[xNODES] [k2c compile options]: bytes that ranks send, counted in three ways.

Prompts are read and tokens generated with statistics and counters. Payload and rows of each tier of the counters, those
that `k2c plan --stats` states, and a count of test/Harness/traffic.py from the statistics and the placement are equal.
What tokens do at worst, which `info` states, is never exceeded. Then the same with the placement that `k2c place` makes
of these statistics, which are those of the second run, too. The loads that it prints are those of both runs.
"""
import json
import os
import sys
import tempfile

import traffic
from bundles import Failure, compiled, json_file, output
from check_invariance import draw
from check_ranks import LIMITS, LOCAL, topology
from wide import checkpoint as found


def read(path):
    with open(path) as file:
        return json.load(file)


def run(bundle, work, prompts, *options):
    """Statistics and counters of a run, and the text of the first."""
    stats, counters = os.path.join(work, "stats.json"), os.path.join(work, "counters.json")
    with json_file(prompts) as batch:
        bundle.text("generate", "--batch-file", batch, "-n", 7, "--ignore-eos", *LOCAL, "--expert-stats", stats,
                    "--counters", counters, *options)
    with open(stats) as file:
        text = file.read()
    return stats, text, read(counters)


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f"{what}: {found}, expected {wanted}")


class Program:
    """A bundle of several ranks."""

    def __init__(self, checkpoint, ranks, nodes, options, limits=LIMITS):
        self.checkpoint, self.topology = checkpoint, topology(ranks, nodes)
        self.bundle = compiled(checkpoint, "--topology", self.topology, *limits, *options)
        layout = dict(entry.split("=") for entry in self.bundle.manifest["layout"].split(","))
        of_node, self.stages, replicas = ranks // nodes, int(layout.get("pp", 1)), int(layout.get("replicas", 1))
        self.of_stage = ranks // (self.stages * replicas)
        self.ranks_of_node = min(of_node, self.of_stage)
        # A row goes from a rank to that with the same place in the next stage: within a node, or to another one. Those
        # of each replica.
        self.hops = [[0, 0] for _ in range(replicas)]
        for stage in range(self.stages * replicas):
            first = stage * self.of_stage
            if stage % self.stages:
                self.hops[stage // self.stages][first // of_node != (first - self.of_stage) // of_node] += 1
        self.group = int(layout.get("tp", 1))
        sites = self.bundle.manifest["collectives"]
        # Of slices of a step, each row goes to or comes from each other rank of its group, within a node.
        self.slices = {site["site"]: site["row_bytes"] for site in sites if site["group"] == "tp"}
        # Ids of tokens and columns of their embedding, rows of output and logits of them.
        self.shared = [site["row_bytes"] for site in sites if site["group"] == "stage"] or [0] * 4
        self.parts = int(layout.get("etp", 1))
        rows = [site["row_bytes"] for site in sites if site["group"] in ("ep", "rail", "pp")]
        self.message, self.row = max(rows), min(rows)
        self.part = next((site["row_bytes"] for site in sites if site["group"] == "etp" and not site["quota_rows"]), 0)
        self.tiers = [name for name, has in (("node", ranks > nodes), ("network", nodes > 1)) if has]

    def planned(self, stats, *options):
        return json.loads(output(["k2c", "plan", self.checkpoint, "--topology", self.topology, "--layout",
                                  self.bundle.manifest["layout"], "--stats", stats, "--json", *options]))

    def check(self, stats, counters, placement, *options):
        """The three counts of a run that went by the file `placement`; the bytes of both tiers."""
        routed = read(stats)
        for layer in routed["layers"].values():
            for choice in layer["prefill"] + layer["decode"]:
                choice["source"] %= self.of_stage
        counted = traffic.count(routed, read(placement), self.ranks_of_node, self.message, self.row, self.parts,
                                self.part)
        forwarded = [0, 0]
        for rank in counters["ranks"]:
            replica, stage = divmod(rank["rank"] // self.of_stage, self.stages)
            for tier, hops in enumerate(self.hops[replica]):
                forwarded[tier] += hops * rank["tokens"] * (stage == 0)
        counted = [[size + rows * self.row, sent + rows] for (size, sent), rows in zip(counted, forwarded)]
        between = counters["inter_node_bytes_per_token"]["mean"] * counters["tokens"]
        expect("bytes between nodes of all tokens", round(between), counted[1][0])
        choices = sum(choice["tokens"] * len(choice["experts"]) for layer in routed["layers"].values()
                      for choice in layer["prefill"] + layer["decode"])
        expect("rows that experts compute, or parts of them", sum(rank["expert_rows"] for rank in counters["ranks"]),
               choices * self.parts)
        of_slices = [self.slices[site["site"]] for site in counters["sites"] if site["site"] in self.slices]
        sent = counters["tokens"] * (self.group - 1)
        counted[0] = [counted[0][0] + sent * sum(of_slices), counted[0][1] + sent * len(of_slices)]
        # They go to and come back from each other rank of the stage.
        for rows, there, back in ((counters["tokens"], *self.shared[:2]),
                                  (sum(routed.get("outputs", {}).values()), *self.shared[2:])):
            for tier, others in enumerate((self.ranks_of_node - 1, self.of_stage - self.ranks_of_node)):
                sent = rows * others * (there > 0)
                counted[tier] = [counted[tier][0] + sent * (there + back), counted[tier][1] + 2 * sent]
        here = dict(zip(("node", "network"), counted))
        expect("tiers", sorted(counters["tiers"]), sorted(self.tiers))
        for name in self.tiers:
            of = counters["tiers"][name]
            expect(f"{name}: the exchange's count is that of the statistics", [of["payload_bytes"], of["messages"]],
                   here[name])
        planned = self.planned(stats, *options)["traffic"]
        expect("k2c plan --stats", [(t["tier"], t["payload_bytes"], t["messages"]) for t in planned],
               [(name, *here[name]) for name in self.tiers])
        total = sum(site["payload_bytes"] for site in counters["sites"])
        expect("payload of all sites", total, sum(bytes_of for bytes_of, _ in counted))
        expect("tokens of ranks", sum(rank["tokens"] for rank in counters["ranks"]), self.stages * counters["tokens"])
        return total


def expect_load(what, figures, counters):
    """Rows of the fullest rank over the mean, of layers: as `k2c place` states them, and as counted."""
    counted = [1 / layer["balancedness"] for layer in counters["layers"].values()]
    for key, wanted in (("mean", sum(counted) / len(counted)), ("max", max(counted))):
        if abs(figures["fullest_over_mean"][key] - wanted) > 1e-6:
            raise Failure(f"{what}, {key}: k2c place states {figures['fullest_over_mean'][key]}, counted {wanted}")


def main(name, shape, *options):
    checkpoint = found(name)
    ranks, nodes = (int(part) for part in (shape.split("x") + shape.split("x"))[:2])
    program = Program(checkpoint, ranks, nodes, options)
    bundle = program.bundle
    prompts = [draw(1 + i * 13 % 41, bundle.manifest["model"]["vocab"], i) for i in range(11)]
    with tempfile.TemporaryDirectory() as work:
        stats, text, counters = run(bundle, work, prompts)
        before = program.check(stats, counters, os.path.join(bundle.folder, "placement.json"))
        for key, worst in bundle.manifest["dispersion"].items():
            if key != "kind" and counters[key]["max"] > worst["max"]:
                raise Failure(f"{key}: {counters[key]} is above the certificate, {worst}")
        placement = os.path.join(work, "placement.json")
        placed = json.loads(output(["k2c", "place", stats, "--bundle", bundle.folder, "--json", "-o", placement]))
        first = counters
        stats, again, counters = run(bundle, work, prompts, "--placement", placement)
        expect("statistics of a second run are equal", again, text)
        after = program.check(stats, counters, placement, "--placement", placement)
        if len(program.hops) == 1:  # a placement is of one replica, counters are of the ranks of all
            expect_load("load before", placed["before"], first)
            expect_load("load with the placement", placed["after"], counters)
    print(f"{name}: {before} bytes in {counters['steps']} steps, {after} by k2c place, counted in three ways")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Failure as wrong:
        sys.exit(f"check_traffic.py: {wrong}")
