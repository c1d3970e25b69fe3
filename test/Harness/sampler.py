"""The draw of a token, written from what runtime/README.md states and not from the runtime's code.

The random number is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
2011).
Arithmetic: (logit - highest) / temperature is rounded to float32 after each operation, as the runtime does; its exp
has an error of 0.88 units in the last place of a float32 at most (polynomials.def), ours is that of doubles. So every
sum of weights here is within a relative ROUNDING of the runtime's, and a choice that lies closer than that to a limit
may fall either way: draw() then returns both ids. A caller counts these draws; they are rare (about ROUNDING a
candidate).
"""
import math
import struct

ROUNDING = 2.0**-23  # 0.88 of 2^-23, and a rest for the sums in doubles
WORD = 0xFFFFFFFF


def philox4x32(counter, key, rounds=10):
    """Four random words for a counter of four words and a key of two."""
    x, k = list(counter), list(key)
    for index in range(rounds):
        if index:
            k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [second >> 32 ^ x[1] ^ k[0], second & WORD, first >> 32 ^ x[3] ^ k[1], first & WORD]
    return x


def uniform(seed, choice, position):
    """The number in [0, 1) of a key: the upper 53 bits of the first two words."""
    words = philox4x32([position & WORD, position >> 32, choice & WORD, choice >> 32], [seed & WORD, seed >> 32])
    return ((words[0] << 32 | words[1]) >> 11) * 2.0**-53


def f32(value):
    """The float32 nearest to a double."""
    return struct.unpack("f", struct.pack("f", value))[0]


def weigh(logits, temperature):
    """id -> exp((logit - highest) / temperature), for logits that are numbers."""
    temperature, highest = f32(temperature), max(x for x in logits if not math.isnan(x))
    return {i: math.exp(f32(f32(x - highest) / temperature)) for i, x in enumerate(logits) if not math.isnan(x)}


def shortest_prefixes(order, weights, top_p):
    """Lengths of the shortest prefix of `order` whose share reaches top_p: one, or those that rounding allows."""
    wanted, lengths, reached = f32(top_p) * math.fsum(weights[i] for i in order), set(), 0.0
    for length, candidate in enumerate(order, 1):
        reached += weights[candidate]
        if reached >= wanted * (1 - 2 * ROUNDING):
            lengths.add(length)
        if reached >= wanted * (1 + 2 * ROUNDING):
            return lengths
    return lengths | {len(order)}


def likely(candidates, weights, min_p):
    """Lists of the candidates that min-p keeps: one, or the two that rounding allows."""
    limit = min(f32(min_p), 1.0) if min_p > 0 else 0.0
    return {tuple(i for i in candidates if weights[i] == 1 or weights[i] >= limit * (1 + sign * ROUNDING))
            for sign in (-1, 1)}


def pick(candidates, weights, share):
    """The first of `candidates` with which the sum of weights exceeds `share` of all; all that rounding allows."""
    total = math.fsum(weights[i] for i in candidates)
    found, below, candidates = set(), 0.0, [i for i in candidates if weights[i] > 0]
    for candidate in candidates:
        above = below + weights[candidate]
        if below <= share * total + 2 * ROUNDING * total and above > share * total - 2 * ROUNDING * total:
            found.add(candidate)
        below = above
    return found or {candidates[-1]}


def draw(logits, uniform_number, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0):
    """The ids that may be drawn: one, but for rounding. Temperature above 0; logits without infinities."""
    weights = weigh(logits, temperature)
    candidates = sorted(weights)
    by_likelihood = sorted(weights, key=lambda i: (-logits[i], i))
    if 0 < top_k < len(candidates):
        candidates = by_likelihood[:top_k]
    cuts = [candidates]
    if top_p < 1:
        order = by_likelihood[: len(candidates)]
        cuts = [order[:length] for length in shortest_prefixes(order, weights, top_p)]
    kept = {choice for cut in cuts for choice in likely(cut, weights, min_p)}
    return set().union(*(pick(choice, weights, uniform_number) for choice in kept))


def self_test():
    """The answers published with Random123 (kat_vectors), and what the filters keep of shares 4, 3, 2 and 1 of ten."""
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    for counter, key, words in [
            ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
            ([WORD] * 4, [WORD] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
            (pi[:4], pi[4:], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]:
        assert philox4x32(counter, key) == words, (counter, key)
    shares = [f32(math.log(x)) for x in (1, 4, 2, 3)]
    assert draw(shares, 0.05, 1) == {0} and draw(shares, 0.11, 1) == {1}  # by id: 1, 4, 2, 3
    assert draw(shares, 0.05, 1, top_k=3) == {1} and draw(shares, 0.99, 1, top_k=3) == {2}  # by share: 4, 3, 2
    assert draw(shares, 0.99, 1, top_p=0.69) == {3} and draw(shares, 0.99, 1, top_p=0.71) == {2}
    assert draw(shares, 0.99, 1, top_k=2, top_p=0.5) == {1}  # 4 of 7 reach a half
    assert draw(shares, 0.99, 1, min_p=0.51) == {3} and draw(shares, 0.4, 1, min_p=0.49) == {1}  # by id: 4, 2, 3
    assert draw(shares, 0.1, 1) == {0, 1}  # a tenth of the whole is a border between two
