// Deno: the file is fetched when the first run begins.
import { address } from "../address.js";
import { fetched } from "../fetched.js";
import { use, useJudge, useRest } from "../core.js";
import * as judge from "../tools/judge.js";
import * as rest from "../rest.js";

// On a server nothing is won by loading it later.
useJudge(judge);
useRest(rest);
use(() => fetched(address), true);

export * from "../index.js";
