// A Worker that runs the agent and streams its events to a page. The page keeps the conversation, so any instance can
// answer. Anyone who can reach the Worker spends your money: add authentication before you deploy it.

import { Agent, AgentError, openai, tool } from "turnwheel";
import page from "./page.html";

const clock = tool({
  name: "clock",
  description: "The date and time in a time zone, such as Europe/Oslo",
  parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  execute: ({ zone }) => new Date().toLocaleString("en-GB", { timeZone: zone, dateStyle: "full", timeStyle: "short" }),
});

/** The longest conversation that a page may send, in bytes. */
const MAX_BYTES = 1_000_000;

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "GET" && pathname === "/") return new Response(page, { headers: { "content-type": "text/html; charset=utf-8" } });
    if (request.method !== "POST" || pathname !== "/chat") return new Response("there is nothing here", { status: 404 });
    // Pages of other sites may post without asking; a browser says that it is one of them.
    if (!["same-origin", null].includes(request.headers.get("sec-fetch-site"))) return new Response("this page may not ask here", { status: 403 });
    if (!(Number(request.headers.get("content-length") ?? Infinity) <= MAX_BYTES)) return new Response(`a conversation may have ${MAX_BYTES} bytes`, { status: 413 });
    try {
      const { prompt, messages } = await request.json();
      const model = openai(env.MODEL ?? "gpt-5-mini", { apiKey: env.OPENAI_API_KEY, baseUrl: env.BASE_URL });
      const run = new Agent({ model, tools: [clock], systemPrompt: "Be brief.", messages }).prompt(prompt);
      // When the page is closed, the next piece cannot be written, and the run is stopped.
      return run.toResponse({ abortOnLeave: true });
    } catch (error) {
      // Invalid JSON or invalid messages; the error's text says what is wrong.
      if (AgentError.isInstance(error) || error instanceof SyntaxError) return new Response(error.message, { status: 400 });
      throw error;
    }
  },
};
