// Cloudflare Workers: the module is compiled at deployment; compiling from bytes is forbidden there.
import module from "../turnwheel.wasm";
import { use, useJudge, useRest } from "../core.js";
import * as judge from "../tools/judge.js";
import * as rest from "../rest.js";

// On a server nothing is won by loading it later.
useJudge(judge);
useRest(rest);
use(() => module, true);

export * from "../index.js";
