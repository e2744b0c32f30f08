// Deno: the file is fetched when the first run begins.
import { address } from "../address.js";
import { fetched } from "../fetched.js";
import { use } from "../core.js";

use(() => fetched(address), true);

export * from "../index.js";
