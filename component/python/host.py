"""A host of turnwheel in Python: HTTP by the standard library, tools as functions, effects on threads.

    pip install wasmtime
    python host.py turnwheel.core.wasm '{"model": {"wire": "openai-chat", "id": "…", "baseUrl": "…"}}' "How many letters has …?"
"""

import base64
import json
import queue
import random
import sys
import threading
import time
import urllib.request

from wasmtime import Instance, Module, Store


class Agent:
    """An agent: an instance of the module, its tools by name, and what it waits for."""

    def __init__(self, file, config, tools, callbacks=None, history=None, checkpoint=None):
        self.store = Store()
        self.exports = Instance(self.store, Module.from_file(self.store.engine, file), []).exports(self.store)
        self.tools, self.callbacks = tools, callbacks or {}
        # What the threads of effects say.
        self.said, self.open, self.outputs, self.again = queue.Queue(), set(), [], False
        first = {"type": "restore", "checkpoint": checkpoint} if checkpoint else {"type": "create", "history": history or []}
        self.step([{**first, "config": config}])

    def step(self, inputs):
        """Says something. What the engine puts out is added to `outputs`; `again` says that it goes on at once."""
        moment = {"now": time.time_ns() // 1_000_000, "seed": random.getrandbits(53), "inputs": inputs}
        text = json.dumps(moment).encode()
        memory = self.exports["memory"]
        at = self.exports["alloc"](self.store, len(text)) & 0xFFFFFFFF
        memory.write(self.store, text, at)
        answer = self.exports["step"](self.store, at, len(text))
        at, length = (answer >> 32) & 0xFFFFFFFF, answer & 0xFFFFFFFF
        answer = json.loads(memory.read(self.store, at, at + length))
        self.outputs += answer["outputs"]
        self.again = answer.get("again", False)
        if refused := self.take("refused"):
            raise ValueError(refused["message"])

    def take(self, kind):
        """Takes the first output of a kind out of those that wait."""
        found = next((output for output in self.outputs if output["type"] == kind), None)
        if found:
            self.outputs.remove(found)
        return found

    def run(self, **begin):
        """Yields the events of a run, and returns its result: `prompt`, or `proceed` after a restore."""
        self.step([begin])
        while True:
            while self.outputs:
                output = self.outputs.pop(0)
                if output["type"] == "event":
                    yield output["event"]
                elif output["type"] == "start":
                    self.open.add(output["id"])
                    threading.Thread(target=self.work, args=(output["id"], output["effect"]), daemon=True).start()
                elif output["type"] == "cancel":
                    self.open.discard(output["id"])
                elif output["type"] == "ended":
                    return output["result"]
            self.step([] if self.again else [self.said.get()])

    def checkpoint(self):
        self.step([{"type": "checkpoint"}])
        return self.take("checkpoint")["checkpoint"]

    def work(self, id, effect):
        def say(kind, **more):
            self.said.put({"type": kind, "id": id, **more})
        try:
            if effect["kind"] == "fetch":
                self.fetch(id, effect, say)
            elif effect["kind"] == "execute":
                say("returned", value=self.tools[effect["tool"]](*effect["arguments"].values()))
            elif effect["kind"] == "sleep":
                time.sleep(effect["ms"] / 1000)
                say("woke")
            else:
                say("answered", value=self.callbacks[effect["name"]](effect["argument"]))
        except Exception as error:  # pylint: disable=broad-except
            say("failed", message=f"{type(error).__name__}: {error}")

    def fetch(self, id, effect, say):
        request = urllib.request.Request(effect["url"], effect["body"].encode(), effect["headers"], method="POST")
        with OPENER.open(request) as response:
            say("head", status=response.status, headers=dict(response.headers))
            while id in self.open and (piece := response.read1(65536)):
                say("body", base64=base64.b64encode(piece).decode())
        say("end")


class Plain(urllib.request.HTTPErrorProcessor):
    """Every status is an answer, and no redirect is followed: a request holds the prompt and the key."""
    http_response = https_response = lambda self, request, response: response


OPENER = urllib.request.build_opener(Plain)


def main(file, config, question):
    tools = {"letters": len}
    word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    described = [{"name": "letters", "description": "Counts the letters of a word", "parameters": word}]
    agent = Agent(file, {**json.loads(config), "tools": described}, tools)
    for event in agent.run(type="prompt", text=question, runId="run-1", sessionId="session-1"):
        if event["type"] == "message_update" and event["delta"]["type"] == "text":
            print(event["delta"]["delta"], end="", flush=True)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
