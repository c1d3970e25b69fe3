"""A toy tokenizer: token i < 256 is byte i; a few merges follow, then the special tokens."""
import base64
import json

MERGES = ["th", "the", " th", " the", "in", "er", "on", "an", "re", " a", "ou", "es", "ti", "or", "en", " s", "al",
          "it", " w", "is", "ed", "st", " o", "ing", " in", "at", "ar", " an", " and", " of"]
TEXT = "the tokens and the experts of a mixture"


def special_ids(vocab):
    first = 256 + len(MERGES)
    assert vocab >= first + 3
    return {"bos": first, "eos": first + 1, "pad": first + 2}


def byte_symbols():
    """GPT-2's printable stand-in for each byte."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, spare = {b: chr(b) for b in keep}, 256
    for b in range(256):
        if b not in table:
            table[b] = chr(spare)
            spare += 1
    return table


def merge_split(token, known):
    """The two known pieces a merged token is made of."""
    for cut in range(len(token) - 1, 0, -1):
        if token[:cut] in known and token[cut:] in known:
            return token[:cut], token[cut:]
    raise ValueError(token)


def write_tokenizer(path, kind, vocab):
    ids = special_ids(vocab)
    specials = {"<bos>": ids["bos"], "<eos>": ids["eos"], "<pad>": ids["pad"]}
    if kind == "tiktoken":
        ranked = [bytes([b]) for b in range(256)] + [m.encode() for m in MERGES]
        lines = [f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(ranked)]
        (path / "tiktoken.model").write_text("".join(lines))
        added = {str(i): {"content": s, "special": True} for s, i in specials.items()}
        config = {"tokenizer_class": "TikTokenTokenizer", "bos_token": "<bos>", "eos_token": "<eos>",
                  "pad_token": "<pad>", "added_tokens_decoder": added}
        (path / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        return
    symbol = byte_symbols()
    spell = lambda s: "".join(symbol[b] for b in s.encode())
    table = {symbol[b]: b for b in range(256)}
    known, merges = {chr(b) for b in range(128)}, []
    for rank, m in enumerate(MERGES):
        merges.append([spell(p) for p in merge_split(m, known)])
        known.add(m)
        table[spell(m)] = 256 + rank
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    doc = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for s, i in specials.items()],
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": table, "merges": merges},
    }
    (path / "tokenizer.json").write_text(json.dumps(doc, ensure_ascii=False) + "\n")


def encode_text(text):
    """Byte-pair encoding of `text`, word by word (a word keeps its leading space)."""
    known, rank = {chr(b) for b in range(128)}, {}
    for r, m in enumerate(MERGES):
        rank[merge_split(m, known)] = r
        known.add(m)
    out = []
    for n, word in enumerate(text.split(" ")):
        parts = list((" " if n else "") + word)
        while True:
            pairs = [(rank[p], i) for i, p in enumerate(zip(parts, parts[1:])) if p in rank]
            if not pairs:
                break
            i = min(pairs)[1]
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        out += [ord(p) if len(p) == 1 else 256 + MERGES.index(p) for p in parts]
    return out
