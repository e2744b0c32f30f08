// Cloudflare Workers: the module is compiled at deployment; compiling from bytes is forbidden there.
import module from "../turnwheel.wasm";
import { use, useRest, useValidator } from "../core.js";
import * as rest from "../rest.js";
import * as validator from "../validator.js";

// On a server nothing is won by loading it later.
useRest(rest);
useValidator(validator);
use(() => module, true);

export * from "../index.js";
