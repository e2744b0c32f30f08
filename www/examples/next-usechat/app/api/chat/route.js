import { fromUIMessages } from "turnwheel/server";
import { newAgent } from "../../../lib/agent.js";

export const dynamic = "force-dynamic";

/** The conversations, by the id of their chat. A server of yours keeps those of different users apart. */
const chats = (globalThis.chats ??= new Map());

export async function POST(request) {
  const { id, messages, trigger } = await request.json();
  const known = chats.get(id) ?? { agent: newAgent() };
  const { prompt, decisions, answers, messages: before } = fromUIMessages(messages, { agent: known.agent });
  chats.set(id, known);
  if (prompt) {
    known.agent.abort(); // a run that the page stopped, or that waits for a decision that will not come
    await known.agent.waitForIdle();
    // This agent still has the answer that is to be replaced.
    if (trigger === "regenerate-message") known.agent = newAgent(before);
    known.run = known.agent.prompt(prompt);
  } else for (const [question, answer] of Object.entries({ ...decisions, ...answers })) known.agent.resolve(question, answer);
  return known.run.toUIMessageStreamResponse({ abortOnLeave: true });
}
