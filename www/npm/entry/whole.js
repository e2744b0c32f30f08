// Deno: the file is fetched when the first run begins.
import { address } from "../address.js";
import { fetched } from "../fetched.js";
import { use, useRest, useValidator } from "../core.js";
import * as rest from "../rest.js";
import * as validator from "../validator.js";

// On a server nothing is won by loading it later.
useRest(rest);
useValidator(validator);
use(() => fetched(address), true);

export * from "../index.js";
