// @ts-check
// Loaded before an example:   node --import tests/e2e/durable/hook.mjs server.js

import { register } from "node:module";

register("./hooks.mjs", import.meta.url);
