#!/usr/bin/env node
// An agent behind AG-UI. POST / is the protocol; everything else is the page.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { Agent, openai, openaiCompatible, subagent, tool } from "turnwheel";
import { fromAGUI, frontendTools, toAGUIResponse } from "turnwheel/ag-ui";

const { env } = process;
const model = env.BASE_URL
  ? openaiCompatible(env.MODEL ?? "qwen3", { baseUrl: env.BASE_URL, apiKey: env.OPENAI_API_KEY })
  : openai(env.MODEL ?? "gpt-5-mini", { apiKey: env.OPENAI_API_KEY });

const send = tool({
  name: "send_letter", description: "Sends a letter", requiresApproval: true,
  parameters: { type: "object", properties: { to: { type: "string" }, text: { type: "string" } }, required: ["to", "text"] },
  execute: ({ to }) => `The letter to ${to} is on its way.`,
});
const clerk = subagent({
  name: "clerk", description: "Writes a letter and sends it, once a person has agreed",
  agent: () => new Agent({ model, tools: [send], systemPrompt: "You write short letters and send them." }),
});

/** The conversations, by the names that clients give them. */
const threads = new Map();

async function answer(request) {
  const input = fromAGUI(await request.json(), { agent: (threadId) => threads.get(threadId)?.agent });
  const thread = threads.get(input.threadId) ?? { agent: new Agent({ model, tools: [clerk, ...frontendTools(input.tools)], messages: input.messages }) };
  threads.set(input.threadId, thread);
  const { agent } = thread;
  // Whoever writes while the agent waits for an answer wants something else.
  if (input.prompt && agent.isRunning) input.prompt.forEach((message) => agent.steer(message));
  else if (input.prompt) thread.run = agent.prompt(input.prompt);
  // One by one: one that was answered before must not keep the others from counting.
  for (const [id, decision] of Object.entries(input.decisions)) agent.resolveTools({ [id]: decision });
  for (const [id, answer] of Object.entries(input.answers)) agent.resolve(id, answer);
  if (!thread.run) return new Response("there is nothing to do\n", { status: 400 });
  return toAGUIResponse(thread.run, { input, abortOnLeave: true });
}

const FILES = { "/": ["index.html", "text/html"], "/page.bundle.js": ["page.bundle.js", "text/javascript"] };

createServer(async (incoming, outgoing) => {
  try {
    const [file, type] = FILES[incoming.url] ?? [];
    if (incoming.method === "GET" && file) return outgoing.setHeader("content-type", type).end(await readFile(new URL(file, import.meta.url)));
    if (incoming.method !== "POST") return outgoing.writeHead(404).end();
    // Pages of others may not use the agent of whoever looks at them.
    if (incoming.headers["content-type"]?.split(";")[0] !== "application/json") return outgoing.writeHead(415).end();
    const response = await answer(new Request(`http://localhost${incoming.url}`, { method: "POST", body: Readable.toWeb(incoming), duplex: "half" }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    const body = Readable.fromWeb(response.body);
    outgoing.on("close", () => body.destroy());
    body.on("error", () => outgoing.destroy()).pipe(outgoing);
  } catch (error) {
    outgoing.writeHead(400).end(`${error.message}\n`);
  }
}).listen(Number(env.PORT ?? 8000), "127.0.0.1", function () {
  console.log(`http://localhost:${this.address().port}`);
});
