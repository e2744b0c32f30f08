"""Serves llmock on 127.0.0.1 until its input ends. Prints its address."""

import sys

from llmock.testing import LLMockServer

with LLMockServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
