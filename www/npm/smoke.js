// @ts-check
// npx turnwheel smoke: eight checks against a real server. Only cli.mjs loads it.

export { smoke } from "./smoke/command.js";
