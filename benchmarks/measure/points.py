"""What is measured: points, models, and the figures the project wants to reach."""
import re

MODELS = ["dsv3", "qwen3moe", "olmoe"]
COMPUTES = ["bf16", "f32"]
POINTS = ["pp512", "tg1", "tg1@512", "tg8@128", "tg32@128"]
EXTRA_POINTS = {"dsv3": ["tg1@8192"]}  # latent attention is what long contexts test

# (model, point) -> least ratio to llama.cpp on the same weights.
WANTED = {("dsv3", "pp512"): 4, ("dsv3", "tg1"): 1.3, ("dsv3", "tg1@512"): 2, ("dsv3", "tg8@128"): 2,
          ("dsv3", "tg32@128"): 2.8, ("dsv3", "tg1@8192"): 5}
for _model in ("qwen3moe", "olmoe"):
    WANTED.update({(_model, "pp512"): 2, (_model, "tg8@128"): 1.4, (_model, "tg32@128"): 1.8})
# Decode at batch 1: bytes a second of the step beside those of the memory probe.
WANTED_SHARE = 0.9


class Point:
    """ppN: a cold prompt of N tokens. tgB@C: B sequences decode together, each after C tokens (tgB: after one)."""

    def __init__(self, name):
        found = re.fullmatch(r"pp(\d+)|tg(\d+)(?:@(\d+))?", name)
        if not found or 0 in [int(number) for number in found.groups() if number]:
            raise ValueError(f"point {name}: write ppN (a prompt of N tokens), tgB or tgB@C (B sequences after C "
                             "tokens)")
        self.name = name
        self.prompt = int(found[1] or 0)
        self.batch = int(found[2] or 1)
        self.context = int(found[3] or 0)

    def title(self):
        if self.prompt:
            return f"prefill {self.prompt:,}"
        after = f" at {self.context:,}" if self.context else ""
        return f"decode, batch {self.batch:,}{after}"

    def tokens(self, steps):
        """The longest a sequence becomes."""
        return self.prompt or max(1, self.context) + steps


def of_model(model, names):
    """The points of a model: those asked for, or the usual ones."""
    return [Point(name) for name in names or POINTS + EXTRA_POINTS.get(model, [])]
