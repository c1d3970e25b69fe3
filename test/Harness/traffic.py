"""What the tokens of statistics send under a placement: an independent reading of runtime/include/k2rt/traffic.h.

A row goes once to each other node that has experts of its token (along the rail) and there once to each other rank;
with one rank a node, or one node, once to each other rank. Back comes a row for each subtree of N5 that the holder has
whole, of those that have an expert of the token. Where ranks next to each other have parts of the same experts, one of
them stands for all here; what it gets it forwards to each other, and gets a row of sums of each choice back.
"""


def subtrees(experts, holders):
    """Of each expert: the first expert of the largest subtree around it whose experts are on the same holders."""
    leaves = max(2**n for n in range(8) if experts % 2**n == 0)
    found = list(range(experts))
    width = experts // leaves
    while width <= experts:
        for first in range(0, experts, width):
            if len({frozenset(holders[expert]) for expert in range(first, first + width)}) == 1:
                found[first:first + width] = [first] * width
        width *= 2
    return found


def ranks_of(chosen, source, ranks, ranks_of_node):
    """The rank that each of a token's experts is computed on: on its own rank, else its own node, else on a node where
    it has an expert that is there alone, else another one for each source."""
    places = {}
    for expert in chosen:
        nodes = {}
        for rank in ranks[expert]:
            nodes.setdefault(rank // ranks_of_node, []).append(rank)
        home = nodes.get(source // ranks_of_node)
        if source in ranks[expert]:
            places[expert] = [source]
        elif home:
            places[expert] = [home[source % len(home)]]
        else:
            each = [found[source % len(found)] for _, found in sorted(nodes.items())]
            turn = source % len(each)
            places[expert] = each[turn:] + each[:turn]
    met = {found[0] // ranks_of_node for found in places.values() if len(found) == 1}
    return {expert: next((rank for rank in found if rank // ranks_of_node in met), found[0])
            for expert, found in places.items()}


def count(statistics, placement, ranks_of_node, message_bytes, row_bytes, parts, part_bytes):
    """(payload bytes, rows) within nodes, and between them, of so many parts of an expert."""
    tiers = [[0, 0], [0, 0]]
    nodes, ranks_of_node = statistics["ranks"] // ranks_of_node, ranks_of_node // parts
    for layer, phases in statistics["layers"].items():
        for phase, entries in phases.items():
            lists = placement["layers"][layer].get("both") or placement["layers"][layer][phase]
            ranks = [[r for r, slots in enumerate(lists) if e in slots] for e in range(statistics["experts"])]
            of_rank = subtrees(statistics["experts"], ranks)
            of_node = subtrees(statistics["experts"], [{r // ranks_of_node for r in found} for found in ranks])
            for entry in entries:
                source = entry["source"] // parts
                home, place = divmod(source, ranks_of_node)
                chosen = entry["experts"]
                rank = ranks_of(chosen, source, ranks, ranks_of_node)
                node = {expert: r // ranks_of_node for expert, r in rank.items()}
                hops = []  # (from a rank, to its experts by holder, subtrees)
                if nodes > 1 and ranks_of_node > 1:
                    hops.append((1, {node[e] for e in chosen} - {home}, {(node[e], of_node[e]) for e in chosen}))
                    entry_rank = {n: n * ranks_of_node + place for n in range(nodes)}
                    hops.append((0, {rank[e] for e in chosen} - set(entry_rank.values()),
                                 {(rank[e], of_rank[e]) for e in chosen}))
                else:
                    hops.append((int(nodes > 1), {rank[e] for e in chosen} - {source},
                                 {(rank[e], of_rank[e]) for e in chosen}))
                for tier, holders, sums in hops:
                    back = sum(holder in holders for holder, _ in sums)
                    tiers[tier][0] += entry["tokens"] * (len(holders) * message_bytes + back * row_bytes)
                    tiers[tier][1] += entry["tokens"] * (len(holders) + back)
                forwarded, choices = len(set(rank.values())), len(chosen)
                tiers[0][0] += entry["tokens"] * (parts - 1) * (forwarded * message_bytes + choices * part_bytes)
                tiers[0][1] += entry["tokens"] * (parts - 1) * (forwarded + choices)
    return tiers
