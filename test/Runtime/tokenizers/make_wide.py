#!/usr/bin/env python3
"""Writes the wide golden cases of unit/Runtime/TokenizerWideTest.cpp with the PyPI packages `tokenizers` 0.23.3 and `tiktoken` 0.14.0.

wide.json: 10,000 texts of all scripts, emoji and control characters, and byte strings that are not UTF-8 ({"hex": ...}), which both packages see as
bytes.decode("utf-8", "replace"). Tokenizers of the kinds that published checkpoints have are trained on the sentences of make_golden.py; of each,
and of those of make_golden.py, NAME.crc holds little-endian u32: the CRC-32 of the ids (as little-endian i32) of every text, special tokens added to
every fifth; then the CRC-32 of the UTF-8 text of the ids of the first 2,500 texts, special tokens left out of every second. NAME.decoded.json is
the text of random ids. Run it in this folder; `make_wide.py NAME TEXT` prints what a package gives for one text.
"""
import base64
import json
import random
import struct
import sys
import unicodedata
import zlib
from pathlib import Path

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import make_golden as narrow

HERE = narrow.HERE
DECODED = 2500
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK_V2 = ["[\r\n]", r"\s?\p{L}+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥ࠀ-一가-퟿]+"]
NOT_L_N = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
KIMI = [r"[\p{Han}]+", NOT_L_N + UPPER + "*" + LOWER + "+" + ENDING, NOT_L_N + UPPER + "+" + LOWER + "*" + ENDING, r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"]
KIMI_NAMES = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 5: "<tool>", 10: "<|bos|>"}
# What composes, decomposes and changes case in less usual ways, and what tokenizers treat apart.
MORE_ATOMS = ["Å", "Å", "A\u030a", "ﬁ", "①", "ｱ", "ﾞ", "가", "가", "각", "q\u0307\u0323", "q\u0323\u0307", "ẛ\u0323", "µ", "K", "İi", "ΑΣ", "Ǆ", "ẞ", "𝐀", "Ⅻ", "㍿", "﷽",
              "क़", "ড়", "לּ", "🏴\U000e0067\U000e0062\U000e007f", "🤦🏽‍♂️", "🇺🇸🇩", "▁", "▁▁", " ▁", "▁ a", "<0x41>", "<0x0A>", "<unk>", "<s>", "</s>", "々", "〇", "𠮷", "ー",
              "\u0301", "\u0301\u0300", "ſ", "'ſ", "'S", "'Ve", "\u1680", "\u2003", "\u202f", "\u180e", "\x1c", "\x1f", "\ue000", "\ufdd0"]


def text_of(entry):
    return entry if isinstance(entry, str) else bytes.fromhex(entry["hex"]).decode("utf-8", "replace")


def is_known(character):
    """Whether `tokenizers` normalizes it: its tables are of Unicode 13, ours of 15, and what is assigned never changes."""
    nfkd, overlay = normalizers.NFKD(), "\u0334"  # a mark that goes before nearly all others
    text = "a" + character + overlay
    return nfkd.normalize_str(text) == unicodedata.normalize("NFKD", text)


def wide_texts():
    rng = random.Random(77)
    atoms = narrow.ATOMS + MORE_ATOMS
    assigned = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co") and is_known(chr(c))]
    # A few hundred ranges of sixteen neighbours: a script of its own each time.
    out = [*atoms, *(a + b for a in ("a ", " ") for b in MORE_ATOMS)]
    while len(out) < 2600:
        out.append("".join(rng.choice(atoms) for _ in range(rng.randint(1, 7))))
    while len(out) < 4600:
        sentence = rng.choice(narrow.SENTENCES)
        begin = rng.randrange(len(sentence))
        out.append(sentence[begin:begin + rng.randint(1, 20)])
    while len(out) < 7600:
        begin = rng.randrange(len(assigned) - 16)
        out.append("".join(rng.choice([*assigned[begin:begin + 16], " "]) for _ in range(rng.randint(2, 8))))
    while len(out) < 9000:
        out.append("".join(rng.choice([rng.choice(assigned), rng.choice(atoms), chr(rng.randrange(0x80))]) for _ in range(rng.randint(1, 6))))
    while len(out) < 9500:  # damaged UTF-8: cut, joined, overwritten
        data = bytearray("".join(rng.choice(atoms) for _ in range(3)).encode())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) + 1)
            data[at:at + rng.randrange(2)] = bytes([rng.choice([rng.randrange(256), rng.choice(b"\x80\xbf\xc0\xc2\xe0\xed\xf0\xf4\xf5\xff")])])
        out.append({"hex": bytes(data).hex()})
    while len(out) < 10000:
        out.append({"hex": bytes(rng.randrange(256) for _ in range(rng.randint(1, 12))).hex()})
    return out


def pieces(normalizer, pre_tokenizer, size=1200, unknown="<unk>", missing=(), fallback=True, fuse=True):
    """SentencePiece's kind: characters, bytes of the characters that are missing."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=fallback, fuse_unk=fuse, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    spelled = [f"<0x{b:02X}>" for b in range(256) if b not in missing] if fallback else []
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=special + spelled, limit_alphabet=200)
    tokenizer.train_from_iterator(narrow.SENTENCES * 3, trainer)
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [dict(t, normalized=False) for t in document["added_tokens"] if t["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    if pre_tokenizer is None:
        document = json.loads(tokenizer.to_str())
        document["pre_tokenizer"] = None
        tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def byte_level(normalizer, pre, size=1200):
    tokenizer = narrow.train(pre, size)
    tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens(["<|bos|>", "<|eos|>"])
    narrow.bos(tokenizer)
    return tokenizer


def wide_tokenizers():
    prefix = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    mixtral = pieces(prefix, None)
    mixtral.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("word", normalized=False, lstrip=True)])
    yield "mixtral", mixtral
    yield "mistral", pieces(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    always = pieces(None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), fallback=False, fuse=False)
    always.decoder = decoders.Metaspace()
    yield "metaspace", always
    yield "partial", pieces(normalizers.Replace(Regex(r"\s"), "▁"), None, 900, missing=range(0x80, 0xA0))
    yield "qwen", byte_level(normalizers.NFC(), pre_tokenizers.Sequence([narrow.split(QWEN), narrow.level()]), 1500)
    olmoe = byte_level(normalizers.NFC(), narrow.level(use_regex=True))
    olmoe.add_tokens([AddedToken(" " * k, normalized=True) for k in range(24, 1, -1)] + [AddedToken("é", normalized=True)])
    yield "olmoe", olmoe
    yield "deepseek_v2", byte_level(normalizers.Sequence([]), pre_tokenizers.Sequence(
        [*map(narrow.split, DEEPSEEK_V2), pre_tokenizers.Digits(individual_digits=True), narrow.level()]), 1500)
    fold = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " ")])
    yield "fold", byte_level(fold, narrow.level(use_regex=True, add_prefix_space=True), 900)
    yield "decomposed", byte_level(normalizers.NFKD(), narrow.level(use_regex=True), 700)
    yield "nfd", byte_level(normalizers.NFD(), narrow.level(use_regex=True), 700)


class Kimi:
    """tiktoken.model with the pattern and the special tokens of tokenization_kimi.py."""

    def __init__(self):
        lines = (HERE / "kimi.model").read_text().split("\n")
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
        self.size, self.special = len(ranks), {}
        for i in range(256):
            self.special[KIMI_NAMES.get(i, f"<|reserved_token_{self.size + i}|>")] = self.size + i
        self.encoding = tiktoken.Encoding("kimi", pat_str="|".join(KIMI), mergeable_ranks=ranks, special_tokens=self.special)

    @staticmethod
    def make():
        trained = narrow.train(pre_tokenizers.Sequence([narrow.split(QWEN), narrow.level()]), 1800)
        spelled = {spelling: byte for byte, spelling in byte_spellings().items()}
        vocabulary = sorted(trained.get_vocab().items(), key=lambda item: item[1])
        tokens = [bytes(spelled[c] for c in spelling) for spelling, _ in vocabulary]
        (HERE / "kimi.model").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)))
        names = {str(len(tokens) + i): {"content": name, "special": name != "<tool>"} for i, name in KIMI_NAMES.items()}
        rules = {"pattern": KIMI, "reserved": 256, "config": {"added_tokens_decoder": names}}
        (HERE / "kimi.rules.json").write_text(json.dumps(rules, indent=1) + "\n")

    def encode(self, text, special):
        return self.encoding.encode(text, allowed_special="all")

    def decode(self, ids, skip):
        left_out = {i for name, i in self.special.items() if name != "<tool>"} if skip else set()
        return self.encoding.decode([i for i in ids if i not in left_out], errors="replace")

    def vocabulary(self):
        return self.size + 256


class Package:
    def __init__(self, name):
        self.tokenizer = Tokenizer.from_file(str(HERE / f"{name}.json"))  # what is tested is the file

    def encode(self, text, special):
        return self.tokenizer.encode(text, add_special_tokens=special).ids

    def decode(self, ids, skip):
        return self.tokenizer.decode(ids, skip_special_tokens=skip)

    def vocabulary(self):
        return self.tokenizer.get_vocab_size()


def byte_spellings():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


def golden(name, tokenizer, cases):
    numbers = []
    every = [tokenizer.encode(text_of(case), i % 5 == 0) for i, case in enumerate(cases)]
    numbers += [zlib.crc32(struct.pack(f"<{len(ids)}i", *ids)) for ids in every]
    numbers += [zlib.crc32(tokenizer.decode(ids, i % 2 == 0).encode()) for i, ids in enumerate(every[:DECODED])]
    (HERE / f"{name}.crc").write_bytes(struct.pack(f"<{len(numbers)}I", *numbers))


def golden_decoded(name, tokenizer):
    rng = random.Random(9)
    decoded = []
    for k in range(60):
        low = rng.choice([0, 0, 200])  # bytes and small tokens more often than not
        sample = [rng.randrange(low, rng.choice([300, tokenizer.vocabulary()])) for _ in range(10)]
        decoded.append({"ids": sample, "skip": k < 30, "text": tokenizer.decode(sample, k < 30)})
    (HERE / f"{name}.decoded.json").write_text(json.dumps(decoded, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    cases = wide_texts()
    (HERE / "wide.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",\n", ":")) + "\n")
    for name, tokenizer in wide_tokenizers():
        document = json.loads(tokenizer.to_str())
        document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
        (HERE / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
        golden_decoded(name, Package(name))
        golden(name, Package(name), cases)
    Kimi.make()
    golden_decoded("kimi", Kimi())
    golden("kimi", Kimi(), cases)
    for name in ("gpt2", "llama3", "deepseek", "flags", "cuts"):
        golden(name, Package(name), cases)


if len(sys.argv) == 3:
    name, text = sys.argv[1:]
    case = json.loads((HERE / "wide.json").read_text())[int(text)] if text.isdigit() else text
    print(repr(case), (Kimi() if name == "kimi" else Package(name)).encode(text_of(case), text.isdigit() and int(text) % 5 == 0))
else:
    main()
