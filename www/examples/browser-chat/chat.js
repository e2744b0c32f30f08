// A chat in a page: plain modules, no bundler. The key belongs to the user and stays in the page's memory.

import { Agent, openaiCompatible, tool } from "./node_modules/turnwheel/entry/web.js";

const element = (id) => document.getElementById(id);
const [form, text, stop, log] = ["form", "text", "stop", "log"].map(element);

const clock = tool({
  name: "clock",
  description: "The date and time in a time zone, such as Europe/Oslo",
  parameters: { type: "object", properties: { zone: { type: "string" } }, required: ["zone"] },
  execute: ({ zone }) => new Date().toLocaleString("en-GB", { timeZone: zone, dateStyle: "full", timeStyle: "short" }),
});

/** The model that is chosen on the page. The choice may change between two messages; the conversation continues. */
const model = () => openaiCompatible(element("model").value, { baseUrl: element("server").value, apiKey: element("key").value || undefined });
const agent = new Agent({ model: model(), tools: [clock], systemPrompt: "You chat with a person in a web page. Be brief." });

/** Adds a paragraph to the log. The model's output is inserted as text, never as HTML. */
function addParagraph(kind, content = "") {
  const paragraph = Object.assign(document.createElement("p"), { className: kind, textContent: content });
  log.append(paragraph);
  return paragraph;
}

async function ask(question) {
  agent.model = model();
  const run = agent.prompt(question);
  stop.onclick = () => run.abort();
  let answer;
  for await (const event of run) {
    if (event.type === "message_start") answer = undefined;
    if (event.type === "message_update" && event.delta.type === "text") (answer ??= addParagraph("assistant")).append(event.delta.delta);
    if (event.type === "message_reset") answer = void answer?.remove();
    if (event.type === "tool_execution_end") addParagraph("note", `${event.toolName}: ${event.result.content[0]?.text}`);
    if (event.type === "retry_attempt") addParagraph("note", `Again in ${event.delayMs / 1000} s: ${event.reason}`);
  }
  const { stopReason, error } = await run;
  if (stopReason !== "completed") addParagraph("note", error?.message ?? stopReason);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = text.value;
  text.value = "";
  addParagraph("user", question);
  // A message that is sent during a run steers it.
  if (agent.isRunning) return void agent.steer(question);
  stop.disabled = false;
  try {
    await ask(question);
  } catch (error) {
    addParagraph("note", error.message);
  }
  stop.disabled = true;
});
