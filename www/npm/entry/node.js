// Node, Bun: the bytes are read when the first run begins.
import { address } from "../address.js";
import { use } from "../core.js";

use(() => {
  // Importing it by name costs a cold start some milliseconds: a module's getters are all called for its exports.
  const fs = process.getBuiltinModule?.("node:fs");
  return fs ? fs.readFileSync(address) : import("node:fs").then(({ readFileSync }) => readFileSync(address));
});

export * from "../index.js";
