"""A checkpoint as GGUF: llama.cpp's converter, told how our byte-level tokenizer splits text.

The converter knows a tokenizer by what it makes of a test text, and refuses others. Ours splits as GPT-2's does.
usage: convert_gguf.py PEERS_FOLDER CHECKPOINT --outfile FILE --outtype bf16|f32
"""
import glob
import os
import runpy
import sys


def main(peers, *arguments):
    sources = glob.glob(os.path.join(peers, "llama_cpp_python-*", "vendor", "llama.cpp"))
    if not sources:
        sys.exit(f"{peers} has no llama.cpp; run benchmarks/peers/install.sh")
    source = sources[-1]
    sys.path[:0] = [source, os.path.join(source, "gguf-py")]
    from conversion import base
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    script = os.path.join(source, "convert_hf_to_gguf.py")
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


main(*sys.argv[1:])
