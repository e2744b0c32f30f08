// @ts-check
// What only a whole engine asks for, as one file; see boundary/rest.js.

export { withoutSecrets } from "./agent/without-secrets.js";
export { REST_EFFECTS as EFFECTS } from "./effects/rest-effects.js";
export { networkError } from "./effects/network-error.js";
export { readRefusal } from "./effects/refusal.js";
export { callRule, validate } from "./rules/rules.js";
export { LATER, REST_ENTRIES as ENTRIES } from "./run/rest-entries.js";
export { executeForeign } from "./tools/ai-sdk-call.js";
export { queuesOf } from "./rules/host-queue.js";
