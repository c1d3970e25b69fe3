"""check_hostile.py CHECKPOINT FOLDER: damaged checkpoints through the k2c program.

Each damage is one change of a copy of CHECKPOINT in FOLDER. `k2c compile --emit model` reads everything but the
weights; a case of WEIGHTS compiles a program. The program must exit 1 with one message in UTF-8, in bounded time and
memory; the message must name what the case says.
"""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import time

from bundles import objects
from golden import Report

WHOLE, GENERATION = "model.safetensors", "generation_config.json"
MAX_SECONDS, MAX_BYTES = 300, 8 << 30  # a loaded machine takes many times the usual second


def config(**changes):
    """config.json with keys changed; `...` removes one."""

    def apply(folder):
        path = os.path.join(folder, "config.json")
        document = json.load(open(path))
        for key, value in changes.items():
            document.pop(key) if value is ... else document.update({key: value})
        json.dump(document, open(path, "w"))

    return apply


def text(name, change):
    """A file whose bytes are changed."""

    def apply(folder):
        path = os.path.join(folder, name)
        data = open(path, "rb").read()
        os.remove(path)
        open(path, "wb").write(change(data))

    return apply


def replaced(old, new):
    """config.json with the first `old` replaced."""
    return text("config.json", lambda data: data.replace(old, new, 1))


def header(change):
    """The weights with another header; the data stay."""

    def apply(data):
        (length,) = struct.unpack("<Q", data[:8])
        tensors = json.loads(data[8 : 8 + length])
        changed = change(tensors)
        encoded = changed if isinstance(changed, bytes) else json.dumps(tensors).encode()
        return struct.pack("<Q", len(encoded)) + encoded + data[8 + length :]

    return text(WHOLE, apply)


def tensor(name, **changes):
    return header(lambda tensors: tensors[name].update(changes))


def not_a_number(name):
    """A NaN (bf16) in the middle of a tensor."""

    def apply(data):
        (length,) = struct.unpack("<Q", data[:8])
        begin, end = json.loads(data[8 : 8 + length])[name]["data_offsets"]
        at = 8 + length + (begin + end) // 4 * 2
        return data[:at] + b"\xc0\x7f" + data[at + 2 :]

    return text(WHOLE, apply)


EMBED, ROUTER = "model.embed_tokens.weight", "model.layers.1.mlp.gate.weight"
CASES = [
    ("hidden_size missing", config(hidden_size=...), "hidden_size"),
    ("hidden_size a string", config(hidden_size="64"), "hidden_size"),
    ("hidden_size negative", config(hidden_size=-64), "hidden_size"),
    ("hidden_size beyond 2^63", config(hidden_size=2**63), "hidden_size"),
    ("as many layers as fit in no memory", config(num_hidden_layers=2**31), "num_hidden_layers"),
    ("more experts chosen than there are", config(num_experts_per_tok=10**6), "num_experts_per_tok"),
    ("groups that do not divide", config(n_group=5), "n_group"),
    ("an unknown key", config(surprise=1), "surprise"),
    ("an unknown model", config(model_type="gpt5", architectures=["Gpt5"]), "config.json"),
    ("an infinite epsilon", replaced(b'"rms_norm_eps": ', b'"rms_norm_eps": 1e999, "x": '), "config.json"),
    ("a key twice", replaced(b"{", b'{"vocab_size": 7,'), "vocab_size"),
    ("not UTF-8", replaced(b'"model_type"', b'"\xff\xfe"'), "config.json"),
    ("nested 100,000 deep", text("config.json", lambda d: b"[" * 100000), "config.json"),
    ("an empty file", text("config.json", lambda d: b""), "config.json"),
    ("an id beyond the vocabulary", text(GENERATION, lambda d: b'{"eos_token_id": 1000000}'), "eos_token_id"),
    ("a header of 2^63 bytes", text(WHOLE, lambda d: struct.pack("<Q", 2**63) + d[8:]), WHOLE),
    ("a header cut", text(WHOLE, lambda d: d[:100]), WHOLE),
    ("data cut", text(WHOLE, lambda d: d[:-1]), WHOLE),
    ("a header that is a list", header(lambda t: b"[]"), WHOLE),
    ("a tensor missing", header(lambda t: t.pop(EMBED) and None), WHOLE),
    ("another shape", tensor(EMBED, shape=[1, 1]), EMBED),
    ("a shape that overflows", tensor(EMBED, shape=[2**32, 2**32]), EMBED),
    ("another type", tensor(EMBED, dtype="I64"), EMBED),
    ("a type that is none", tensor(EMBED, dtype="F128"), EMBED),
    ("offsets that overlap", tensor(EMBED, data_offsets=[0, 2]), EMBED),
    ("offsets that go back", tensor(EMBED, data_offsets=[8, 2]), EMBED),
    ("offsets behind the end", tensor(EMBED, data_offsets=[2**62, 2**62 + 2]), EMBED),
    ("NaN in a router", not_a_number(ROUTER), ROUTER),
]
WEIGHTS = {"NaN in a router"}


def limit():
    if os.environ.get("K2C_INSTRUMENT") == "address":
        return  # AddressSanitizer's shadow is address space
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


def check(checkpoint, folder):
    report = Report(f"hostile copies of {checkpoint}")
    messages = set()
    for number, (name, damage, place) in enumerate(CASES):
        source, output = os.path.join(folder, f"{number}"), os.path.join(folder, f"{number}.out")
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(checkpoint, source)
        damage(source)
        options = ["--cache-dir", objects()] if name in WEIGHTS else ["--emit", "model"]
        command = ["k2c", "compile", source, "-o", output, "--compute", "f32", *options]
        begin = time.monotonic()
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=MAX_SECONDS, preexec_fn=limit
        )
        report.equal(done.returncode, 1, f"{name}: exit code ({time.monotonic() - begin:.1f} s): {done.stderr}")
        report.equal(done.stderr.count("k2c: error: "), 1, f"{name}: one message: {done.stderr}")
        report.equal(place in done.stderr, True, f"{name}: names {place}: {done.stderr}")
        report.equal(os.path.exists(os.path.join(output, "run")), False, f"{name}: nothing to run")
        messages.add(done.stderr.replace(source, ""))
        shutil.rmtree(source)
    report.equal(len(messages) >= 25, True, f"{len(messages)} of {len(CASES)} messages differ")
    return report.finish()


if __name__ == "__main__":
    sys.exit(check(*sys.argv[1:]))
