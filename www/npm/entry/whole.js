// Deno: the file is fetched when the first run begins.
import { address } from "../address.js";
import { fetched } from "../fetched.js";
import { use, useJudge, useRest } from "../core.js";
import { checkOf, excessOf, Judge } from "../tools/judge.js";
import { REST } from "../rest.js";

// On a server nothing is won by loading it later.
useJudge({ checkOf, excessOf, Judge });
useRest(REST);
use(() => fetched(address), true);

export * from "../index.js";
