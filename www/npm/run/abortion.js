// @ts-check
// The wish to end a run: by the caller's signal, or by `abort`. Only the first one counts.

import { quietly } from "../effects/slot.js";
import { textOf } from "../shared.js";

export class Abortion {
  /** @param {AbortSignal | undefined} signal of the caller @param {(reason: unknown) => void} abort */
  constructor(signal, abort) {
    /** @type {string | undefined} */
    this.text = undefined;
    /** @type {unknown} */
    this.reason = undefined;
    this.signal = signal;
    this.listener = () => abort(reasonOf(signal));
    if (signal?.aborted) this.ask(reasonOf(signal));
    else signal?.addEventListener("abort", this.listener, { once: true });
  }

  get isAsked() {
    return this.text !== undefined;
  }

  /** @param {unknown} reason @returns {string} */
  ask(reason) {
    this.reason = reason;
    return (this.text = abortText(reason));
  }

  /** What an effect is told that nobody wants any more. */
  effectReason() {
    return isError(this.reason) ? this.reason : (this.text ?? "not wanted any more");
  }

  /** Stops listening: the signal may outlive the run. */
  unlisten() {
    quietly(() => this.signal?.removeEventListener("abort", this.listener));
  }
}

/** Why a run ends, in words. @param {unknown} reason */
export const abortText = (reason) => (reason === undefined ? "the run was aborted" : textOf(reason));

/** @param {AbortSignal | undefined} signal of the host, who may have made it itself @returns {unknown} */
function reasonOf(signal) {
  try {
    return signal?.reason;
  } catch (error) {
    return error;
  }
}

/** @param {unknown} value that may throw when it is looked at @returns {value is Error} */
function isError(value) {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}
