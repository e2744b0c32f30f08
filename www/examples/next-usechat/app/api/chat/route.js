import { fromUIMessages } from "turnwheel/server";
import { newAgent } from "../../../lib/agent.js";

export const dynamic = "force-dynamic";

/** The conversations, by the id of their chat. A server of yours keeps those of different users apart. */
const chats = (globalThis.chats ??= new Map());

export async function POST(request) {
  const { id, messages } = await request.json();
  const known = chats.get(id) ?? { agent: newAgent() };
  const { prompt, decisions, answers, messages: before } = fromUIMessages(messages, { agent: known.agent });
  chats.set(id, known);
  if (prompt) {
    known.agent.abort(); // a run that the page stopped, or that waits for a decision that will not come
    await known.agent.waitForIdle();
    // The page regenerates an answer, or edits a message: which one, its place among those of the user says.
    const users = known.agent.messages.flatMap(({ role }, at) => (role === "user" ? [at] : []));
    const at = users[before.filter(({ role }) => role === "user").length];
    if (at !== undefined) known.agent.rewind(at);
    known.run = known.agent.prompt(prompt);
  } else for (const [question, answer] of Object.entries({ ...decisions, ...answers })) known.agent.resolve(question, answer);
  return known.run.toUIMessageStreamResponse({ abortOnLeave: true });
}
