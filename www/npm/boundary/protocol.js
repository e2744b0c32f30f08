// @ts-check
// The kinds of outbox entries; see `mod kind` in src/wasm/outbox.rs. The bundler inlines these constants, so
// that the table in `entries.js` has plain numbers as its keys.

export const TEXT = 1;
export const THINKING = 2;
export const ARGUMENTS = 3;
export const CALL = 4;
export const EVENT = 5;
export const APPEND = 6;
export const APPEND_ANSWER = 7;
export const APPEND_RESULT = 8;
export const TRUNCATE = 9;
export const COPY = 10;
export const EFFECT = 11;
export const CANCEL = 12;
export const RECEIPT = 13;
export const END = 14;
export const MESSAGE_END = 15;
export const TOOL_END = 16;
export const TURN_END = 17;
export const AGENT_END = 18;
export const PROPOSED = 19;
export const TOOL_START = 20;
export const TURN_START = 21;
export const MESSAGE_START = 22;
export const STARTS = 23;
export const STRING = 24;
export const HTTP = 25;
export const TOOL = 26;
export const TURN_ENDED = 27;
export const APPEND_TEXT = 28;
