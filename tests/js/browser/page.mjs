// The page that runs the checks, in itself and in a worker.
import { runChecks } from "./checks.mjs";

globalThis.inPage = runChecks;
globalThis.inWorker = (at) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
    worker.postMessage(at);
  });
document.documentElement.dataset.ready = "";
