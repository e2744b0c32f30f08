// Local first: the browser's own model, and another one where it cannot answer. One run, one history.

import { Agent, openaiCompatible, tool } from "turnwheel";
import { promptApi } from "turnwheel/local";

const element = (id) => document.getElementById(id);
/** Until the first piece of an answer. A laptop that is busy is slow; nobody waits longer for it. */
const PATIENCE_MS = 8000;

const clock = tool({
  name: "clock",
  description: "The time now",
  parameters: { type: "object" },
  execute: () => new Date().toLocaleTimeString("en-GB"),
});

const local = promptApi({ id: "this device", languages: ["en"], onProgress: ({ loaded }) => (element("state").textContent = `The browser fetches its model: ${Math.round(100 * loaded)} %`) });
/** Who goes on when this device cannot: nobody, unless the person wants it. */
const others = () => (element("cloud").checked ? [openaiCompatible(element("model").value, { baseUrl: element("address").value, apiKey: element("key").value || undefined })] : []);

/** Goes on with the conversation so far. @param {Agent} [before] */
const agentAfter = (before) => new Agent({
  model: local,
  fallback: others(),
  timeouts: { firstChunkMs: PATIENCE_MS },
  // Who was too slow once is not asked again for this answer.
  retry: { maxAttempts: 1 },
  tools: [clock],
  systemPrompt: "You chat with a person in a web page. Be brief.",
  messages: before?.messages,
});
let agent = agentAfter();
// What is typed there holds from the next message on.
element("settings").addEventListener("change", () => void (hasChanged = true));
let hasChanged = false;

function addParagraph(kind, content = "") {
  const paragraph = Object.assign(document.createElement("p"), { className: kind, textContent: content });
  element("log").append(paragraph);
  return paragraph;
}

async function ask(question) {
  if (hasChanged) agent = agentAfter(agent);
  hasChanged = false;
  const run = agent.prompt(question);
  element("stop").onclick = () => run.abort();
  let answer;
  for await (const event of run) {
    if (event.type === "message_start") answer = undefined;
    if (event.type === "message_update" && event.delta.type === "text") (answer ??= addParagraph("assistant")).append(event.delta.delta);
    if (event.type === "message_reset") answer = void answer?.remove();
    if (event.type === "message_end" && answer) answer.after(Object.assign(document.createElement("small"), { className: "who", textContent: `by ${event.message.model}` }));
    if (event.type === "model_fallback") addParagraph("note", `${event.from} cannot answer; ${event.to} does.`);
    if (event.type === "tool_execution_end") addParagraph("note", `${event.toolName}: ${event.result.content[0]?.text}`);
  }
  const { stopReason, error } = await run;
  if (stopReason !== "completed") addParagraph("note", error?.message ?? stopReason);
}

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = element("text").value;
  element("text").value = "";
  addParagraph("user", question);
  // A message that is sent during a run steers it.
  if (agent.isRunning) return void agent.steer(question);
  element("stop").disabled = false;
  try {
    await ask(question);
  } catch (error) {
    addParagraph("note", error.message);
  }
  element("stop").disabled = true;
});

const words = { available: "This device answers.", downloadable: "This device answers; the browser fetches its model first.", downloading: "The browser is fetching its model.", unavailable: "This browser has no model of its own." };
element("state").textContent = words[await local.availability()];
