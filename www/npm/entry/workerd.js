// Cloudflare Workers: the module is compiled at deployment; compiling from bytes is forbidden there.
import module from "../turnwheel.wasm";
import { use } from "../core.js";

use(() => module, true);

export * from "../index.js";
