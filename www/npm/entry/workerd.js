// Cloudflare Workers: the module is compiled at deployment; compiling from bytes is forbidden there.
import module from "../turnwheel.wasm";
import { use, useJudge, useRest } from "../core.js";
import { checkOf, excessOf, Judge } from "../tools/judge.js";
import { REST } from "../rest.js";

// On a server nothing is won by loading it later.
useJudge({ checkOf, excessOf, Judge });
useRest(REST);
use(() => module, true);

export * from "../index.js";
