// @ts-check
// Lets the engine work, and delivers what it reports, until the run waits for an answer.

/** @import { Driver } from "./driver.js" */

/** How many microtasks a finished tool gets to report back through a few layers of promises. */
const POLL_TICKS = 8;

export class Poller {
  /** @param {Driver} run */
  constructor(run) {
    this.run = run;
    /** Whether a batch is being delivered. */
    this.isDelivering = false;
    /** Whether the engine has more to do once the batch is delivered. */
    this.hasMore = false;
    /** How many microtasks until the run polls; 0 if no poll is scheduled. */
    this.ticks = 0;
    /** The agent's count of posts when the engine last worked. */
    this.seenPosts = 0;
    /** Ends the wait of `#pump`. */
    this.ring = () => {};
    this.#pump();
  }

  /** Whether a poll is scheduled. */
  get isWaiting() {
    return this.ticks > 0;
  }

  /** Whether something was posted since the engine last worked. */
  get isBehind() {
    return this.run.core.registration.posts !== this.seenPosts;
  }

  /**
   * Delivers what the engine has to report, and continues until it waits for an answer.
   * @param {number} [slot] of a response
   * @param {number} [size] how many of its bytes are in the engine's memory
   */
  poll(slot = 0, size = 0) {
    // A call from a listener is handled after this batch: the loop below asks the engine again.
    if (this.isDelivering) return void (this.hasMore = true);
    const { run } = this;
    const { engine } = run.engineRun;
    // Before a run has begun, it has one that counts as dead.
    if (run.isOver || engine.dead || engine.isHeld) return;
    // Called from a rule: the engine is in the middle of a step, of this run or another.
    if (engine.busy) return queueMicrotask(() => (engine.discardIfKilled(), this.poll()));
    this.isDelivering = true;
    try {
      do {
        if (run.batches.waiting === undefined) {
          const more = this.#step(slot, size);
          if (more === 0) break;
          this.hasMore = more === 2;
          // The bytes are in.
          slot = size = 0;
        }
        run.batches.deliver(engine);
        // Not before all parts of the engine are there.
        if (run.batches.waiting !== undefined) return void engine.hold(() => this.poll());
      } while (this.hasMore && !run.isOver);
    } finally {
      this.isDelivering = false;
    }
  }

  /** Called when the engine asks to be polled. */
  wake() {
    if (this.isDelivering) this.hasMore = true;
    else this.pollSoon();
  }

  /**
   * Polls once the promises that are settling now have settled. Tools that end at the same moment have all
   * reported by then, including one that steers or aborts before it returns.
   */
  pollSoon() {
    this.ticks = POLL_TICKS;
    this.ring();
  }

  /** Polls when somebody rings. It waits where the run was started, so that the run goes on in that async context after every command. */
  async #pump() {
    await new Promise((/** @type {(nothing: void) => void} */ ring) => (this.ring = ring));
    while (--this.ticks > 0) await undefined;
    this.#pump();
    this.poll();
  }

  /** @param {number} slot @param {number} size */
  #step(slot, size) {
    const { core, engineRun } = this.run;
    const { engine } = engineRun;
    engine.busy = true;
    core.runs.active = this.run;
    this.seenPosts = core.registration.posts;
    try {
      return engineRun.poll(slot, size);
    } catch (error) {
      engine.failed(error, () => this.poll(slot, size));
      return 0;
    } finally {
      engine.busy = false;
      core.runs.active = undefined;
    }
  }
}
