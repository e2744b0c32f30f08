// @ts-check
// The agent in a Vercel Workflow. Its body runs in a VM without I/O, and takes no functions: calls of the model and of tools go to
// the step `run` as plain JSON.

import { Agent, use } from "turnwheel/slim";
import { byData, elsewhere, perform, use as useServer } from "turnwheel/durable";
import { createHook, getStepMetadata, getWorkflowMetadata, sleep } from "workflow";
import { instructions, model, tell, tools } from "./agent.js";
import { standIns } from "./stand-ins.js";
import { pageEngine, serverEngine } from "./wasm.js";

/** @param {string} wasm */
const bytesOf = (wasm) => Uint8Array.from(atob(wasm), (letter) => letter.charCodeAt(0));

/** @param {string} customer */
export async function order(customer) {
  "use workflow";
  standIns();
  useServer(() => bytesOf(serverEngine));
  const id = getWorkflowMetadata().workflowRunId;
  const host = byData({
    run,
    sleep: (ms) => sleep(ms),
    wait: async (name, request) => {
      const hook = createHook({ token: `${id}/${name}` });
      await ask({ id, name, request });
      return hook;
    },
  });
  const agent = new Agent({ model: elsewhere(model), tools, systemPrompt: instructions, host });
  const { text, stopReason, error } = await agent.prompt(`What about the order of ${customer}?`);
  if (error) throw error.cause ?? error;
  return { text, stopReason, messages: JSON.stringify(agent.messages) };
}

/** @param {Parameters<typeof perform>[0]} effect */
async function run(effect) {
  "use step";
  use(() => bytesOf(pageEngine));
  return perform(effect, { model, tools, attempt: getStepMetadata().attempt });
}

/** @param {Parameters<typeof tell>[0]} question */
async function ask(question) {
  "use step";
  return tell(question);
}
