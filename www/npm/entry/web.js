// Browsers, web workers and bundlers: the module is fetched in parts when the first run begins.
import { use } from "../core.js";
import { load } from "../parts.js";

use(load, true);

export * from "../index.js";
