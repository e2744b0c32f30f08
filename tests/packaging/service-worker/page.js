// The page asks an address of its own site; the service worker answers.
import { fromResponse } from "turnwheel/remote";

const output = document.querySelector("output");
navigator.serviceWorker.register("./worker.js", { type: "module" });
if (!navigator.serviceWorker.controller) {
  await new Promise((taken) => navigator.serviceWorker.addEventListener("controllerchange", taken, { once: true }));
}
for await (const event of fromResponse(await fetch("./agent", { method: "POST", body: "What is 17 + 25?" }))) {
  if (event.type === "message_update" && event.delta.type === "text") output.append(event.delta.delta);
  if (event.type === "tool_execution_end") output.append(`(${event.result.content[0].text}) `);
  if (event.type === "agent_end" && event.error) output.append(event.error.message);
}
output.dataset.done = "";
