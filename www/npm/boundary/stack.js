// @ts-check
// Whether enough of the JavaScript stack is left for a call into wasm. A stack that overflows inside wasm leaves the
// instance half-way through its work, which is the end of it for every agent that lives there. So a call that a host
// may make from the depth of a recursion looks first. What starts from a timer or from a promise has the whole stack.

import { misuse } from "../shared.js";

/** As many arguments as fill 128 KB of stack; the engine's deepest call takes a third of that. */
const FILL = new Array(16_384).fill(0);
const nothing = () => {};

/** Whether the stack has room for a call into wasm. */
export function hasStack() {
  try {
    Reflect.apply(nothing, undefined, FILL);
    return true;
  } catch {
    return false;
  }
}

/** Refuses a call for which the stack has no room; nothing has changed then. */
export function needStack() {
  if (!hasStack()) throw misuse("the JavaScript stack is nearly full, so nothing was done; call this from a recursion that is less deep, or in a microtask");
}
