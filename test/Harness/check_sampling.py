"""check_sampling.py CHECKPOINT --temperature T [k2c compile options]: which ids a compiled program draws.

sampler.py, which shares no code with the runtime, predicts each id from the logits before it (`run logits --all` over
prompt and drawn ids) and the key (seed, choice 0, position). Each filter alone and all together, over a batch file
whose entries have seeds of their own or that of --seed. The same prompt and seed must draw the same ids wherever the
entry lies: in the batch turned round, alone, in other chunks and threads. A filter counts as tested only if some draw
would be another without it. Latent attention wants one form everywhere (--mla), so that re-read logits have the bits
of the generated ones.
"""
import argparse
import sys

import sampler
from bundles import Failure, compiled, json_file
from check_invariance import draw as random_ids
from golden import Report

SEED, NEW_TOKENS = 11, 24
MAX_UNDECIDED = 0.005  # draws that lie within rounding of a border, of all


def cases(temperature):
    """Settings of the sampler by the name of what they test."""
    filters = {"top_k": 5, "top_p": 0.6, "min_p": 0.15}
    yield "temperature", {"temperature": temperature}
    yield "low temperature", {"temperature": temperature / 3}
    for name, value in filters.items():
        yield name, {"temperature": temperature, name: value}
    yield "all", {"temperature": 1.5 * temperature, "top_k": 40, "top_p": 0.9, "min_p": 0.5}


def entries(vocab):
    """Prompts with seeds (None: that of --seed); three keys come twice, one prompt with four seeds."""
    prompts = [random_ids(length, vocab, length) for length in (1, 5, 9, 33)]
    seeds = [(0, None), (1, 7), (2, 2**64 - 1), (3, None), (1, 8), (1, None), (3, SEED), (1, 7), (2, 0), (0, SEED)]
    return [(prompts[index], seed) for index, seed in seeds]


class Program:
    """A compiled program under one setting of the sampler."""

    def __init__(self, bundle, setting):
        self.bundle = bundle
        self.flags = ["-n", NEW_TOKENS, "--ignore-eos"]
        for name, value in setting.items():
            self.flags += ["--" + name.replace("_", "-"), value]

    def batch(self, asked, *arguments):
        """The ids drawn for each entry; an entry without a seed is a plain list."""
        with json_file([ids if seed is None else {"ids": ids, "seed": seed} for ids, seed in asked]) as file:
            done = self.bundle.json("generate", "--batch-file", file, "--seed", SEED, *self.flags, *arguments)
        return [one["ids"] for one in done]

    def alone(self, ids, seed):
        """The ids drawn for one entry by a run of its own."""
        seed = SEED if seed is None else seed
        return self.bundle.json("generate", "--prompt-ids", ",".join(map(str, ids)), "--seed", seed, *self.flags)["ids"]


def predictions(report, bundle, name, setting, asked, drawn):
    """Holds every drawn id to the prediction; counts undecided ones and those that a filter made."""
    logits = bundle.batch_logits([ids + new for (ids, _), new in zip(asked, drawn)], "--all")
    filters = [key for key in setting if key != "temperature"]
    wrong, undecided, likeliest, count = [], 0, 0, 0
    changed = dict.fromkeys(filters, 0)
    for entry, ((ids, seed), new, table) in enumerate(zip(asked, drawn, logits)):
        for position, got in enumerate(new, len(ids)):
            row, number = table[position - 1], sampler.uniform(SEED if seed is None else seed, 0, position)
            want = sampler.draw(row, number, **setting)
            count, undecided, likeliest = count + 1, undecided + (len(want) > 1), likeliest + (row[got] == max(row))
            if got not in want:
                wrong.append(f"entry {entry} position {position}: {got}, predicted {sorted(want)}")
            for key in filters:
                changed[key] += got not in sampler.draw(row, number, **{k: v for k, v in setting.items() if k != key})
    report.equal(wrong, [], f"{name}: {count} draws as predicted, {undecided} within rounding of a border")
    report.within(undecided, MAX_UNDECIDED * count, f"{name}: undecided draws")
    report.check(likeliest < count, f"{name}: {count - likeliest} draws are not the likeliest token")
    for key in filters:
        report.check(changed[key] > 0, f"{name}: {changed[key]} draws are others without {key}")


def check(source, temperature, options):
    sampler.self_test()
    report = Report(f"sampling of {source}")
    bundle = compiled(source, *options)
    asked = entries(bundle.manifest["model"]["vocab"])
    for name, setting in cases(temperature):
        program = Program(bundle, setting)
        drawn = program.batch(asked)
        predictions(report, bundle, name, setting, asked, drawn)
        report.equal(program.batch(asked[::-1])[::-1], drawn, f"{name}: the batch turned round")
        report.equal(program.batch(asked, "--chunk", 3, "--threads", 3), drawn, f"{name}: in chunks, 3 threads")
    for index in (1, 2, 3, 7):
        report.equal(program.alone(*asked[index]), drawn[index], f"entry {index} alone")
    for first, second in ((1, 7), (3, 6), (0, 9)):
        report.equal(drawn[first], drawn[second], f"entries {first} and {second} are one key")
    report.equal(len({tuple(drawn[i]) for i in (1, 4, 5)}), 3, "one prompt with three seeds")
    return report.finish()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--temperature", type=float, required=True)
    known, others = parser.parse_known_args()
    try:
        sys.exit(check(known.source, known.temperature, others))
    except Failure as failure:
        sys.exit(f"check_sampling.py: {failure}")
