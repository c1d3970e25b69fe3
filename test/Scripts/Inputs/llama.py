#!/usr/bin/env python3
"""Stands for llama.cpp's programs, by the name it has. It is fastest with two servers and flash attention."""
import json
import os
import socket
import sys
import time

words = sys.argv[1:]


def value(name):
    return words[words.index(name) + 1]


def main():
    program = os.path.basename(sys.argv[0])
    if program == "ggml-rpc-server":
        with socket.create_server((value("--host"), int(value("--port")))):
            time.sleep(600)
    for endpoint in value("--rpc").split(","):
        host, port = endpoint.split(":")
        socket.create_connection((host, int(port))).close()
    rate = 100 + 50 * ("," in value("--rpc")) + 10 * (value("-fa") == "1")
    if program == "llama-bench":
        return print(json.dumps([{"samples_ts": [rate] * int(value("-r"))}]))
    for _ in value("-npl").split(","):
        print(json.dumps({"speed_pp": 10 * rate, "speed_tg": rate}))


main()
