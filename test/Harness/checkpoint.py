"""Writes a checkpoint from a seed: a Llama of any size, sound or with one thing wrong.

usage: checkpoint.py FOLDER [--hidden N --layers N ...] [--set KEY=JSON] [--unset KEY] [--shards N]
                     [--drop TENSOR] [--add TENSOR] [--shape TENSOR=ROWS,COLUMNS] [--store TENSOR=F32]
                     [--overlap TENSOR] [--header-bytes N] [--truncate BYTES]

Matrices hold random bf16 numbers of about 1/sqrt(hidden), norms hold ones, so that text of any length stays finite.
"""
import argparse
import array
import json
import os
import random
import struct

BF16_ONE = 0x3f80


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name, default in [("hidden", 64), ("layers", 2), ("heads", 4), ("kv-heads", 2), ("inter", 96), ("vocab", 128),
                          ("seed", 1), ("shards", 1)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ["set", "unset", "drop", "add", "shape", "store", "overlap"]:
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--header-bytes", type=int)
    parser.add_argument("--truncate", type=int, default=0)
    return parser.parse_args()


def config(args):
    document = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": args.hidden,
                "num_hidden_layers": args.layers, "num_attention_heads": args.heads,
                "num_key_value_heads": args.kv_heads, "intermediate_size": args.inter, "vocab_size": args.vocab,
                "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 512,
                "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
    for change in args.set:
        key, value = change.split("=", 1)
        document[key] = json.loads(value)
    for key in args.unset:
        del document[key]
    return document


def shapes(args):
    """Tensor name -> shape, in the order of the files."""
    hidden, kv = args.hidden, args.hidden // args.heads * args.kv_heads
    found = {"model.embed_tokens.weight": [args.vocab, hidden]}
    for layer in range(args.layers):
        prefix = f"model.layers.{layer}."
        for name, shape in [("self_attn.q_proj", [hidden, hidden]), ("self_attn.k_proj", [kv, hidden]),
                            ("self_attn.v_proj", [kv, hidden]), ("self_attn.o_proj", [hidden, hidden]),
                            ("mlp.gate_proj", [args.inter, hidden]), ("mlp.up_proj", [args.inter, hidden]),
                            ("mlp.down_proj", [hidden, args.inter]), ("input_layernorm", [hidden]),
                            ("post_attention_layernorm", [hidden])]:
            found[f"{prefix}{name}.weight"] = shape
    found["model.norm.weight"] = [hidden]
    found["lm_head.weight"] = [args.vocab, hidden]
    for change in args.shape:
        name, shape = change.split("=")
        found[name] = [int(size) for size in shape.split(",")]
    for name in args.drop:
        del found[name]
    for name in args.add:
        found[name] = [4, 4]
    return found


def elements(shape, rng, hidden):
    """Random bf16 numbers of one exponent: half of them negative, magnitudes within a factor of two."""
    count = 1
    for size in shape:
        count *= size
    if len(shape) == 1:
        return array.array("H", [BF16_ONE]) * count
    exponent = 127 - max(1, hidden.bit_length() // 2)
    numbers = bytearray(rng.randbytes(2 * count))
    numbers[0::2] = numbers[0::2].translate(bytes(low & 0x7f | (exponent & 1) << 7 for low in range(256)))
    numbers[1::2] = numbers[1::2].translate(bytes(high & 0x80 | exponent >> 1 for high in range(256)))
    return array.array("H", bytes(numbers))


def write_file(path, args, tensors):
    rng = random.Random(f"{args.seed} {os.path.basename(path)}")
    stored = dict(change.split("=") for change in args.store)
    header, offset = {}, 0
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        size = count * (4 if stored.get(name) == "F32" else 2)
        begin = offset - 2 if name in args.overlap else offset
        header[name] = {"dtype": stored.get(name, "BF16"), "shape": shape, "data_offsets": [begin, begin + size]}
        offset = begin + size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text) if args.header_bytes is None else args.header_bytes) + text)
        for name, shape in tensors.items():
            values = elements(shape, rng, args.hidden)
            if stored.get(name) == "F32":
                values = array.array("I", (value << 16 for value in values))
            file.write(values.tobytes())
        file.truncate(8 + len(text) + offset - args.truncate)


def main():
    args = arguments()
    os.makedirs(args.folder, exist_ok=True)
    with open(os.path.join(args.folder, "config.json"), "w") as file:
        json.dump(config(args), file, indent=1)
    tensors = shapes(args)
    if args.shards == 1:
        write_file(os.path.join(args.folder, "model.safetensors"), args, tensors)
        return
    names, weight_map = list(tensors), {}
    for shard in range(args.shards):
        file_name = f"model-{shard + 1:05}-of-{args.shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::args.shards]}
        write_file(os.path.join(args.folder, file_name), args, part)
        weight_map.update(dict.fromkeys(part, file_name))
    with open(os.path.join(args.folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file, indent=1)


if __name__ == "__main__":
    main()
