// @ts-check
// The instance in which tapes are played. Agents that are recorded live in others of the same engine; see ../boundary/server.js.

import { bind } from "../boundary/server-glue.js";
import { ready as serverReady, serverModule } from "../boundary/server.js";
import { serverAddress } from "../server-address.js";

/** @import { Calls } from "../boundary/server-glue.js" */

/** @type {Calls | undefined} */
let player;
/** @type {WebAssembly.Module | undefined} */
let played;

/** Loads the server engine; in Node from the disk, also where the engine of pages came from elsewhere. */
export function ready() {
  const fs = typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:fs");
  return serverReady(fs && (() => fs.readFileSync(serverAddress())));
}

/** The calls that play tapes. @returns {Calls} */
export function calls() {
  const module = serverModule();
  if (player && played === module) return player;
  played = module;
  return (player = bind(module, []).calls);
}

/** The instance broke: the next tape is played in a fresh one. */
export function forgetPlayer() {
  player = undefined;
}
