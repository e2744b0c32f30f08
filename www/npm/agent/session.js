// @ts-check
// What an agent keeps from run to run besides its messages: the session's id, the state that its tools share, the
// usage.

import { addUsage, misuse, noUsage, plainCopy, textOf } from "../shared.js";

/** @import { AgentOptions, JsonValue, Usage } from "../index.js" */
/** @import { EngineState } from "../checkpoint/format.js" */

export class Session {
  /** @param {AgentOptions} options */
  constructor(options) {
    this.initial = options.sessionState;
    /** Created by the first run: Workers forbid randomness in the global scope. @type {string | undefined} */
    this.id = options.sessionId;
    /** As the tools see it. @type {Map<string, JsonValue>} */
    this.state = new Map();
    this.usage = noUsage();
    this.#resetState();
  }

  reset() {
    this.usage = noUsage();
    this.#resetState();
  }

  #resetState() {
    try {
      this.state = new Map(Object.entries(plainCopy(this.initial ?? {})));
    } catch (error) {
      throw misuse(`\`sessionState\` is no JSON: ${textOf(error)}`, error);
    }
  }

  /** @param {EngineState} state */
  restore({ sessionId, usage, session }) {
    this.id = sessionId ?? this.id;
    this.usage = { ...noUsage(), ...usage };
    this.state = new Map(Object.entries(plainCopy(session ?? {})));
  }

  /** @param {Usage} usage */
  addUsage(usage) {
    this.usage = addUsage(this.usage, usage);
  }
}
