// A web worker that runs the checks it is sent the addresses for.
import { runChecks } from "./checks.mjs";

self.onmessage = async ({ data }) => self.postMessage(await runChecks(data));
