import { Agent, openaiCompatible, peek, tool } from "turnwheel";

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

/** The chat of the last visit, as the page shows it until its agent is there. */
const saved = localStorage.getItem("chat");
export const before = saved ? peek(saved).messages : [];

/** The agent, which goes on where the last visit ended. */
export async function openAgent() {
  const agent = saved ? await Agent.restore(saved, options) : new Agent(options);
  // `keep`: a full storage must not end it for the visit.
  agent.subscribe(({ type }) => { if (type === "message_end" || type === "turn_end" || type === "agent_end") localStorage.setItem("chat", JSON.stringify(agent.checkpoint())); }, { keep: true });
  if (agent.canContinue) agent.continue();
  return agent;
}
