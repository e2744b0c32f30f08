// @ts-check
// What the engine's entry files share with those that need no engine (remote, react, stores). Code outside
// imports it from here: then it ships as one file, and a host that loads file by file starts faster.

export * from "./checkpoint/sealed.js";
export * from "./errors/errors.js";
export * from "./errors/names.js";
export * from "./events/approvals.js";
export * from "./events/blocks.js";
export * from "./events/close.js";
export * from "./events/fold.js";
export * from "./events/partial-answer.js";
export * from "./events/partial-json.js";
export * from "./events/queue.js";
export * from "./events/subscribers.js";
export * from "./events/texts.js";
export * from "./events/usage.js";
export * from "./host/abort.js";
export * from "./host/copies.js";
export * from "./host/host.js";
export * from "./host/sleep.js";
export * from "./host/trace-context.js";
export * from "./host/uuid.js";
export * from "./messages/decision.js";
export * from "./messages/from-client.js";
export * from "./messages/input.js";
export * from "./messages/media.js";
export * from "./messages/tool-result.js";
export * from "./options/members.js";
export * from "./options/steering.js";
export * from "./response/respond.js";
