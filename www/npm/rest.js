// @ts-check
// What only a whole engine asks for, as one file; see boundary/rest.js.

import { withoutSecrets } from "./agent/without-secrets.js";
import { networkError } from "./effects/network-error.js";
import { readRefusal } from "./effects/refusal.js";
import { REST_EFFECTS } from "./effects/rest-effects.js";
import { queuesOf } from "./rules/host-queue.js";
import { callRule, validate } from "./rules/rules.js";
import { LATER, REST_ENTRIES } from "./run/rest-entries.js";
import { executeForeign } from "./tools/ai-sdk-call.js";

// An object, not a namespace: for one of those the bundler writes a loop that a page with members of its own on
// `Object.prototype` breaks.
export const REST = { withoutSecrets, EFFECTS: REST_EFFECTS, networkError, readRefusal, callRule, validate, LATER, ENTRIES: REST_ENTRIES, executeForeign, queuesOf };
