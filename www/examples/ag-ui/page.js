// The page: an HttpAgent of AG-UI, and what it knows, drawn anew whenever that changes.

import { HttpAgent } from "@ag-ui/client";

const agent = new HttpAgent({ url: "/", threadId: crypto.randomUUID() });
const byId = (id) => document.getElementById(id);
let problem = "";

function line(kind, text) {
  const element = document.createElement("div");
  element.className = kind;
  element.textContent = text;
  return element;
}

function draw() {
  const lines = agent.messages.flatMap((message) => [
    ...(message.content && message.role !== "reasoning" ? [line(message.role, String(message.content))] : []),
    ...(message.toolCalls ?? []).map(({ function: { name, arguments: args } }) => line("tool", `${name} ${args}`)),
  ]);
  byId("log").replaceChildren(...lines, ...(problem ? [line("problem", problem)] : []));
  byId("stop").disabled = !agent.isRunning;
}

/** Asks about everything that the run waits for; the answers go together. */
function ask(interrupts) {
  const resume = [];
  const rows = interrupts.map(({ id, message }) => {
    const row = line("question", message);
    for (const approved of [true, false]) {
      const button = document.createElement("button");
      button.textContent = approved ? "Yes" : "No";
      button.onclick = () => {
        row.remove();
        resume.push(approved ? { interruptId: id, status: "resolved", payload: { approved } } : { interruptId: id, status: "cancelled" });
        if (resume.length === interrupts.length) run({ resume });
      };
      row.append(" ", button);
    }
    return row;
  });
  byId("questions").replaceChildren(...rows);
}

async function run(parameters) {
  problem = "";
  byId("questions").replaceChildren();
  try {
    await agent.runAgent(parameters, { onEvent: () => void requestAnimationFrame(draw), onRunErrorEvent: ({ event }) => void (problem = event.message) });
  } catch (error) {
    if (error.name !== "AbortError") problem = error.message;
  }
  ask(agent.pendingInterrupts ?? []);
  draw();
}

document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: byId("text").value });
  byId("text").value = "";
  run();
};
byId("stop").onclick = () => agent.abortRun();
