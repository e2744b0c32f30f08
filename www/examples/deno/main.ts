// A server in Deno that streams the agent's text:  curl -N "localhost:8000/?q=Is it late in Oslo?"

import { Agent, type AgentRun, openaiCompatible, tool } from "turnwheel";

const clock = tool({
  name: "clock",
  description: "The time in a time zone, such as Europe/Oslo",
  parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  execute: ({ zone }: { zone: string }) => new Date().toLocaleTimeString("en-GB", { timeZone: zone }),
});
// Ollama on this machine, or any server that speaks Chat Completions.
const model = openaiCompatible(Deno.env.get("MODEL") ?? "qwen3", {
  baseUrl: Deno.env.get("BASE_URL") ?? "http://localhost:11434/v1",
  apiKey: () => Deno.env.get("API_KEY"),
});

/** Yields the text of all answers, and at the end the error, if there is one. */
async function* textOf(run: AgentRun) {
  yield* run.textStream;
  const { error } = await run;
  yield error ? `\n${error.message}\n` : "\n";
}

Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.env.get("PORT") ?? 8000) }, (request) => {
  const question = new URL(request.url).searchParams.get("q");
  if (!question) return new Response("ask with ?q=…\n", { status: 400 });
  const run = new Agent({ model, tools: [clock], systemPrompt: "Be brief." }).prompt(question);
  // Closing the connection ends the iteration, which stops the run.
  return new Response(ReadableStream.from(textOf(run)).pipeThrough(new TextEncoderStream()), { headers: { "content-type": "text/plain; charset=utf-8" } });
});
