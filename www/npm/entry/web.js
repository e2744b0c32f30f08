// Browsers, web workers and bundlers: the module is fetched in halves when the first run begins.
import { use } from "../core.js";
import { load } from "../halves.js";

use(load, true);

export * from "../index.js";
