// @ts-check
// Agents in files, for the processes of one machine where Node has no SQLite. How they are kept is in folders.js, which is loaded
// when it is needed: whoever has a database does without.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { StoreOptions } from "../../stores-node.js" */

const METHODS = /** @type {const} */ (["claim", "save", "events", "renew", "release", "read", "remove", "owner", "abandoned", "list"]);

/** @param {string} folder @param {StoreOptions} [options] */
export function fileStore(folder, options) {
  if (typeof folder !== "string" || folder === "") throw misuse(`fileStore takes the name of a folder, got ${kindOf(folder)}`);
  /** @type {Promise<any> | undefined} */
  let loading;
  const shelf = () => (loading ??= import("./folders.js").then(({ FileShelf }) => new FileShelf(folder)));
  const methods = METHODS.map((name) => [name, async (/** @type {any[]} */ ...args) => (await shelf())[name](...args)]);
  return fleetStore({ place: "files", ...Object.fromEntries(methods) }, options);
}
