// @ts-check
// turnwheel/local: models that run in the page itself. The engines are the app's own; none is imported here.

export { promptApi } from "./local/prompt-api.js";
export { wllama } from "./local/wllama.js";
