import { Wllama } from "@wllama/wllama";
import { Agent } from "turnwheel";
import { wllama as modelOf } from "turnwheel/local";

const element = (id) => document.getElementById(id);
const wllama = new Wllama({ default: "./node_modules/@wllama/wllama/esm/wasm/wllama.wasm" });
let agent;

/** Loads the model from a file of the user's or from an address. The browser caches the weights. */
async function load() {
  const [file] = element("file").files;
  element("state").textContent = "loading …";
  const progressCallback = ({ loaded, total }) => (element("state").textContent = `loading … ${Math.round((100 * loaded) / total)} %`);
  if (file) await wllama.loadModel([file], { n_ctx: 2048 });
  else await wllama.loadModelFromUrl(new URL(element("address").value, location.href).href, { n_ctx: 2048, progressCallback });
  agent = new Agent({ model: modelOf(wllama), systemPrompt: "You are a helpful assistant.", streamOptions: { maxTokens: 200 } });
  element("state").textContent = "ready";
}

async function ask() {
  const run = agent.prompt(element("question").value);
  element("stop").onclick = () => run.abort();
  element("answer").textContent = "";
  for await (const piece of run.textStream) element("answer").textContent += piece;
  const { stopReason, error, usage } = await run;
  element("state").textContent = error && stopReason !== "aborted" ? error.message : `${stopReason}, ${usage.output} tokens`;
}

const reportErrors = (work) => () => work().catch((error) => (element("state").textContent = String(error)));
element("load").onclick = reportErrors(load);
element("ask").onclick = reportErrors(ask);
