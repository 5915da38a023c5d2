"""Runs the engine on one embedding model: texts as JSON on standard input, numbers and vectors on standard output.

A process of its own, so that an abort of the engine fails one test. Not collected: started by `engine`.
"""

import json
import sys
import urllib.request
from typing import Any

import xllamacpp


def main(weights: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.embedding = True
    params.n_parallel = 1
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # More would spin against other tests.
    params.warmup = False
    server = xllamacpp.Server(params)

    def ask(path: str, body: object) -> Any:
        request = urllib.request.Request(server.listening_address + path, json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    results = []
    for text in json.load(sys.stdin):
        tokens = ask("/tokenize", {"content": text, "add_special": True})["tokens"]
        vector = ask("/v1/embeddings", {"input": text, "model": "x"})["data"][0]["embedding"]
        results.append({"ids": tokens, "vector": vector})
    sys.stdout.write(f"\n{json.dumps(results)}\n")


main(sys.argv[1])
