import { Agent, openaiCompatible, peek, tool } from "turnwheel";
import { indexedDBStore } from "turnwheel/stores";

const rename = tool<{ title: string }>({
  name: "rename_page",
  description: "Gives the page another title",
  parameters: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
  requiresApproval: true,
  execute: ({ title }) => {
    document.title = title;
    return `The page is called ${title} now.`;
  },
});

/** Any model works. This one runs in Ollama on this machine: no key is needed, and nothing leaves the machine. */
const options = { model: openaiCompatible("qwen3:4b", { server: "ollama" }), systemPrompt: "Be brief.", tools: [rename] };

const store = indexedDBStore({ name: "chats" });

/** The chats of this browser, the newest first, each with its first words as the title. */
export const listChats = () => store.list({ limit: 30 });

/** The messages of a chat, which the page shows until its agent is there. */
export async function messagesOf(id: string) {
  const saved = await store.load(id);
  return saved ? peek(saved).messages : [];
}

/** The agents that are open: two of one chat would run its tools twice. */
const agents = new Map<string, Promise<Agent>>();

/** The agent of a chat, which goes on where the last visit ended. */
export function agentOf(id: string) {
  const open = agents.get(id) ?? openAgent(id);
  agents.set(id, open);
  return open;
}

async function openAgent(id: string) {
  const saved = await store.load(id);
  const agent = saved ? await Agent.restore(saved, options) : new Agent(options);
  store.follow(id, agent);
  if (agent.canContinue) agent.continue();
  return agent;
}
