"""Serves llmock on 127.0.0.1 until its input ends. Prints its address."""

import os
import sys

# A short answer would be sent whole before its reader can stop reading it: chunks come one by one, as from a model.
os.environ["LLMOCK_STREAM_CHUNK_DELAY_MS"] = "20"

from llmock.testing import LLMockServer

with LLMockServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
