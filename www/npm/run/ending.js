// @ts-check
// The end of a run, as far as it has come: first the event, then the result.

/** @import { AgentResult, Usage } from "../index.js" */

export class Ending {
  constructor() {
    /** Whether the event of the end was given to the listeners. */
    this.isTold = false;
    /** Whether the run is over: nothing follows. */
    this.isOver = false;
    /** Whether somebody has read why the run failed; undefined if that is not asked. @type {boolean | undefined} */
    this.isRead = undefined;
    /** Runs until somebody has to have read it. @type {ReturnType<typeof setTimeout> | undefined} */
    this.patience = undefined;
    /** The agent's usage before this run was added. @type {Usage | undefined} */
    this.usageBefore = undefined;
    /** @type {(result: AgentResult) => void} */
    this.settle = () => {};
    this.result = new Promise((/** @type {(result: AgentResult) => void} */ resolve) => (this.settle = resolve));
  }
}
