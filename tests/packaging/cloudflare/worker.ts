// A Cloudflare Worker in TypeScript: it streams an answer, has an agent per Durable Object, and shows what only that can do.
import { Agent, openai, scripted, tool } from "turnwheel";
import { DurableAgent, route } from "turnwheel/cloudflare";
import { agentHandler } from "turnwheel/server";

interface Env { CHAT: DurableObjectNamespace<Chat>; OPENAI_API_KEY?: string }

const add = tool({
  name: "add",
  description: "Adds two numbers",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }) => a + b,
});

// Without a key it answers from a script.
function options({ OPENAI_API_KEY }: { OPENAI_API_KEY?: string }) {
  const script = [{ text: "I add. ", toolCalls: [{ toolName: "add", arguments: { a: 17, b: 25 } }] }, "It is 42."];
  const model = OPENAI_API_KEY ? openai("gpt-5-mini", { apiKey: OPENAI_API_KEY }) : scripted(script);
  return { model, tools: [add], systemPrompt: "Be brief." };
}

export class Chat extends DurableAgent<Env> {
  options() {
    return options(this.env);
  }
}

// An agent that all requests of a plain Worker would share: it answers that this cannot be.
const shared = agentHandler(new Agent(options({})), { allowedHosts: true });

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.startsWith("/shared/")) return shared(request);
    const routed = route(request, env.CHAT);
    if (routed) return routed;
    const run = new Agent(options(env)).prompt(searchParams.get("q") ?? "What is 17 + 25?", { signal: request.signal });
    const pieces = run.textStream[Symbol.asyncIterator]();
    const body = new ReadableStream<string>({
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
    return new Response(body.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
  },
} satisfies ExportedHandler<Env>;
