#!/usr/bin/env python3
"""Train the bundled model: a small Kimi K2 on the King James Bible.

Not needed to build, test or run k2c; kept so that the files beside it can be made again.

  data    the text of Debian's package bible-kjv-text, read through the program `bible`
  model   transformers' DeepseekV3ForCausalLM, the architecture Kimi K2 is published under, in the
          sizes of the config.json beside this script
  output  tokenizer.json and model.safetensors with the tensor names of the published checkpoints;
          weights bf16, router biases f32

Experts are kept busy without an auxiliary loss (arXiv 2408.15664, section 3; DeepSeek-V3, arXiv
2412.19437, section 2.1.2): after each step, an expert that got fewer tokens than the mean has its
selection bias raised by a constant, one that got more has it lowered.

  train.py --minutes 55        train, or go on from the last state in --work
  train.py --golden            recompute golden.json from the files in --out
  train.py --sample "In the"   continue a text with the files in --out

Needs torch, transformers 5, tokenizers, safetensors and Debian's bible-kjv, bible-kjv-text.
"""

import argparse
import bisect
import json
import math
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

HERE = Path(__file__).resolve().parent
CONFIG = json.loads((HERE / "config.json").read_text())
VOCAB = CONFIG["vocab_size"]
BOS, EOS = "<bos>", "<eos>"  # the last two of the vocabulary
HELD_OUT = 40  # one chapter in so many is kept for validation
BIAS_STEP = 1e-3  # gamma of the loss-free balancing rule
BIAS_REST = 0.9  # share of the training after which the biases stay as they are
WARMUP_STEPS = 100
NEW_TOKENS = 48
TOKENIZER_CASES = [
    "In the beginning God created", "  two  spaces\n\nlines\n", "don't count 1 22 333!", "naïve café 世界 🙂", ""]
PROMPTS = {
    "psalm": "The voice of",
    "prophet": "Thus saith the LORD of hosts,",
    "gospel": "Then Jesus said unto them,",
}


# ----------------------------------------------------------------------------------------------------
# Text and tokens


def read_chapters():
    """The text as a list of chapters, each a list of verses."""
    dump = subprocess.run(["bible", "-f", "Gen1:1-Rev22:21"], check=True, capture_output=True, text=True).stdout
    chapters, last = [], None
    for line in dump.splitlines():
        reference, verse = line.split(" ", 1)
        chapter = reference.rsplit(":", 1)[0]
        if chapter != last:
            chapters.append([])
            last = chapter
        chapters[-1].append(verse.strip())
    return chapters


def train_tokenizer(chapters):
    """Byte-level BPE: 256 bytes, merges up to the vocabulary size, then <bos> and <eos>."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(("\n".join(c) + "\n" for c in chapters), trainer)
    tokenizer.add_special_tokens([BOS, EOS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, VOCAB - 2), (EOS, VOCAB - 1)]
    )
    if tokenizer.get_vocab_size() != VOCAB or tokenizer.token_to_id(EOS) != CONFIG["eos_token_id"]:
        raise RuntimeError("the text is too short for the vocabulary")
    return tokenizer


class Stream:
    """Chapters as one row of tokens (verses end in a newline, chapters in <eos>), cut into windows that
    start with <bos> at the beginning of a verse."""

    def __init__(self, tokenizer, chapters, length):
        self.length, self.tokens, self.starts = length, [], []
        for chapter in chapters:
            for verse in chapter:
                self.starts.append(len(self.tokens))
                self.tokens += tokenizer.encode(verse + "\n", add_special_tokens=False).ids
            self.tokens += [CONFIG["eos_token_id"], CONFIG["bos_token_id"]]
        self.per_epoch = len(self.tokens) // length - 1

    def window(self, position):
        """length + 1 tokens from the last verse that starts at or before `position`."""
        start = self.starts[bisect.bisect_right(self.starts, position) - 1]
        return [CONFIG["bos_token_id"]] + self.tokens[start : start + self.length]

    def epoch(self, seed):
        """All windows of one pass, shuffled; each pass cuts at other places."""
        rng = random.Random(seed)
        shift = rng.randrange(self.length)
        order = list(range(self.per_epoch))
        rng.shuffle(order)
        return [shift + i * self.length for i in order]

    def batch(self, step, size):
        """The batch of a step: a function of the step alone, so that a resumed run sees the same data."""
        epochs, windows = {}, []
        for n in range(step * size, (step + 1) * size):
            e, i = divmod(n, self.per_epoch)
            if e not in epochs:
                epochs[e] = self.epoch(e)
            windows.append(self.window(epochs[e][i]))
        return torch.tensor(windows)


# ----------------------------------------------------------------------------------------------------
# Model


def model_config(published):
    """transformers knows Kimi K2 as the DeepSeek V3 it is."""
    config = DeepseekV3Config(**{k: v for k, v in published.items() if k not in ("model_type", "architectures")})
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    return config


def routers(model):
    return [layer.mlp.gate for layer in model.model.layers if hasattr(layer.mlp, "gate")]


class LoadBalance:
    """Counts the tokens each router sends to each expert and moves the selection biases against it."""

    def __init__(self, model):
        self.gates = routers(model)
        self.loads = [None] * len(self.gates)
        for i, gate in enumerate(self.gates):
            gate.register_forward_hook(lambda g, _, out, i=i: self.count(i, g, out[2]))

    def count(self, i, gate, chosen):
        self.loads[i] = torch.bincount(chosen.flatten(), minlength=gate.num_experts).float()

    def update(self, gamma):
        for gate, load in zip(self.gates, self.loads):
            gate.e_score_correction_bias += gamma * torch.sign(load.mean() - load)

    def worst(self):
        """Largest load over mean load, and smallest load over mean load."""
        shares = [load / load.mean() for load in self.loads]
        return max(float(s.max()) for s in shares), min(float(s.min()) for s in shares)


def published_tensors(model):
    """name -> tensor as published: one tensor per expert and matrix, bf16, router biases f32."""
    out = {}
    for name, value in model.state_dict().items():
        if name.endswith("experts.gate_up_proj"):
            for e, both in enumerate(value):
                gate, up = both.chunk(2)
                out[name.replace("gate_up_proj", f"{e}.gate_proj.weight")] = gate
                out[name.replace("gate_up_proj", f"{e}.up_proj.weight")] = up
        elif name.endswith("experts.down_proj"):
            for e, down in enumerate(value):
                out[name.replace("down_proj", f"{e}.down_proj.weight")] = down
        else:
            out[name] = value
    return {n: (t if n.endswith("_bias") else t.bfloat16()).clone() for n, t in out.items()}


def export(model, tokenizer, out):
    """Write a complete checkpoint folder; the weights appear last and at once."""
    out.mkdir(parents=True, exist_ok=True)
    if out.resolve() != HERE:
        for name in ("config.json", "generation_config.json"):
            shutil.copy(HERE / name, out)
    tokenizer.save(str(out / "tokenizer.json"))
    partial = out / "model.safetensors.partial"
    save_file(published_tensors(model), partial, metadata={"format": "pt"})
    partial.rename(out / "model.safetensors")


def load_exported(path):
    """The model as a user of the folder gets it: published names through transformers' own mapping, f32."""
    config = model_config(json.loads((path / "config.json").read_text()))
    options = dict(config=config, dtype=torch.float32, output_loading_info=True)
    model, info = DeepseekV3ForCausalLM.from_pretrained(path, **options)
    wrong = {kind: names for kind, names in info.items() if names}
    if wrong:
        raise RuntimeError(f"{path}: tensors do not match the architecture: {wrong}")
    return model.eval(), Tokenizer.from_file(str(path / "tokenizer.json"))


# ----------------------------------------------------------------------------------------------------
# Training


class State:
    """What a run has to remember: weights, optimiser, steps done and seconds spent."""

    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.file = args.work / "state.pt"
        config = model_config(CONFIG)
        config._attn_implementation, config._experts_implementation = "sdpa", "grouped_mm"
        self.model = DeepseekV3ForCausalLM(config)
        matrices = [p for p in self.model.parameters() if p.dim() >= 2]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": args.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), fused=True)
        self.step, self.seconds = 0, 0.0
        if self.file.exists():
            saved = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.seconds = saved["step"], saved["seconds"]

    def save(self):
        partial = self.file.with_suffix(".partial")
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "step": self.step, "seconds": self.seconds}, partial)
        partial.replace(self.file)


def token_loss(model, windows):
    logits = model(input_ids=windows[:, :-1], use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def validate(model, stream, size=16):
    """Mean loss in nats per token over the held-out chapters."""
    model.eval()
    positions, total = [i * stream.length for i in range(stream.per_epoch)], 0.0
    for i in range(0, len(positions), size):
        windows = torch.tensor([stream.window(p) for p in positions[i : i + size]])
        total += float(token_loss(model, windows)) * len(windows)
    model.train()
    return total / len(positions)


def learning_rate(peak, step, share):
    """Linear warm-up, then a cosine down to a fiftieth of the peak at share 1."""
    return peak * min(1.0, (step + 1) / WARMUP_STEPS) * (0.02 + 0.49 * (1 + math.cos(math.pi * min(share, 1.0))))


def training_step(state, stream, balance, args, share):
    for group in state.optimizer.param_groups:
        group["lr"] = learning_rate(args.lr, state.step, share)
    loss = token_loss(state.model, stream.batch(state.step, args.batch))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    state.optimizer.step()
    state.optimizer.zero_grad()
    if share < BIAS_REST:
        balance.update(BIAS_STEP)
    state.step += 1
    return float(loss.detach())


def train(args):
    """Run to the end of the schedule: --minutes of training time or --steps, whichever ends first."""
    torch.set_flush_denormal(True)
    args.work.mkdir(parents=True, exist_ok=True)
    chapters = read_chapters()
    tokenizer = train_tokenizer(chapters)
    kept = Stream(tokenizer, [c for i, c in enumerate(chapters) if i % HELD_OUT], args.length)
    held = Stream(tokenizer, chapters[::HELD_OUT], args.length)
    state = State(args)
    balance = LoadBalance(state.model)
    print(f"{sum(p.numel() for p in state.model.parameters())} parameters, {len(kept.tokens)} training tokens, "
          f"{len(held.tokens)} held out, starting at step {state.step}", flush=True)
    share = lambda: max(state.step / args.steps, state.seconds / 60 / args.minutes)
    clock, saved, mean = time.monotonic(), time.monotonic(), None
    while share() < 1.0:
        loss = training_step(state, kept, balance, args, share())
        now = time.monotonic()
        state.seconds, clock = state.seconds + now - clock, now
        mean = loss if mean is None else 0.98 * mean + 0.02 * loss
        if state.step % 50 == 0:
            high, low = balance.worst()
            print(f"step {state.step} tokens {state.step * args.batch * args.length} loss {mean:.3f} "
                  f"load {low:.2f}..{high:.2f} done {100 * share():.1f} % in {state.seconds / 60:.1f} min", flush=True)
        if now - saved > 60 * args.save_every:
            saved = now
            finish(state, tokenizer, held, args)
    finish(state, tokenizer, held, args)


def finish(state, tokenizer, held, args):
    """Save the state, export, and say how good it is."""
    state.save()
    export(state.model, tokenizer, args.out)
    print(f"step {state.step} validation loss {validate(state.model, held):.3f}, exported", flush=True)


# ----------------------------------------------------------------------------------------------------
# Looking at the result


@torch.no_grad()
def greedy(model, ids, count):
    """Greedy continuation by whole-sequence recomputation: tokens and the gap between the two best logits."""
    row, new, margins = list(ids), [], []
    for _ in range(count):
        best = model(input_ids=torch.tensor([row]), use_cache=False).logits[0, -1].topk(2)
        margins.append(float(best.values[0] - best.values[1]))
        new.append(int(best.indices[0]))
        row.append(new[-1])
    return new, margins


@torch.no_grad()
def golden(args):
    """golden.json: what an f32 implementation has to generate from the bf16 file."""
    model, tokenizer = load_exported(args.out)
    prompts = []
    for name, text in PROMPTS.items():
        ids = tokenizer.encode(text).ids
        last = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].topk(8)
        new, margins = greedy(model, ids, NEW_TOKENS)
        prompts.append({
            "name": name, "text": text, "ids": ids,
            "last": {"argmax": int(last.indices[0]), "top_ids": last.indices.tolist(),
                     "top_values": [round(v, 5) for v in last.values.tolist()]},
            "greedy": {"ids": new, "text": tokenizer.decode(new), "margins": [round(m, 5) for m in margins]},
        })
        print(f"{name}: least margin {min(margins):.4f}\n  {text}{tokenizer.decode(new)}")
    doc = {"format": 1, "compute": "float32", "new_tokens": NEW_TOKENS,
           "reference": f"transformers {transformers.__version__}, eager, torch {torch.__version__}, 1 thread",
           "min_margin": min(min(p["greedy"]["margins"]) for p in prompts), "prompts": prompts,
           "tokenizer": [{"text": t, "ids": tokenizer.encode(t).ids} for t in TOKENIZER_CASES]}
    lists = re.compile(r'\[[^]["{}]+\]')  # of numbers: one line each
    rows = lists.sub(lambda m: f"[{' '.join(m[0][1:-1].split())}]", json.dumps(doc, indent=1, ensure_ascii=False))
    (args.out / "golden.json").write_text(rows + "\n")


@torch.no_grad()
def sample(args):
    model, tokenizer = load_exported(args.out)
    torch.manual_seed(args.seed)
    ids = tokenizer.encode(args.sample).ids
    end = len(ids) + args.tokens
    while len(ids) < end and ids[-1] != CONFIG["eos_token_id"]:
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1] / max(args.temperature, 1e-4)
        ids.append(int(torch.multinomial(logits.softmax(-1), 1)))
    print(tokenizer.decode(ids))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=HERE, help="folder of the exported model (default: this one)")
    p.add_argument("--work", type=Path, default=Path("bundled-work"), help="folder of the resumable state")
    p.add_argument("--minutes", type=float, default=55.0, help="training time, over all runs on one state")
    p.add_argument("--steps", type=int, default=5500, help="most steps to take")
    p.add_argument("--batch", type=int, default=8, help="sequences per step")
    p.add_argument("--length", type=int, default=256, help="tokens per sequence")
    p.add_argument("--lr", type=float, default=2.5e-3, help="peak learning rate")
    p.add_argument("--weight-decay", type=float, default=0.1, help="of the matrices")
    p.add_argument("--seed", type=int, default=0, help="of the first weights, or of a sample")
    p.add_argument("--threads", type=int, default=1, help="threads of torch")
    p.add_argument("--save-every", type=float, default=5.0, help="minutes between states and exports")
    p.add_argument("--golden", action="store_true", help="only write golden.json")
    p.add_argument("--sample", metavar="TEXT", help="only continue TEXT")
    p.add_argument("--tokens", type=int, default=120, help="length of a sample")
    p.add_argument("--temperature", type=float, default=0.7, help="of a sample; 0 is greedy")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    if args.golden:
        golden(args)
    elif args.sample is not None:
        sample(args)
    else:
        train(args)


if __name__ == "__main__":
    main()
