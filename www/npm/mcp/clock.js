// @ts-check
// How long a server may be silent, and how long a call may take: the SDK's own timers cannot be stopped while a person
// thinks.

/** The longest delay of a timer; with a longer one it would fire at once. */
const LONGEST = 2 ** 31 - 1;

export class Clock {
  /** How many questions are open. */
  #stops = 0;
  #left;
  #silence;
  #onEnd;
  #since = performance.now();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {number} silenceMs @param {number} totalMs @param {() => void} onEnd */
  constructor(silenceMs, totalMs, onEnd) {
    this.#silence = silenceMs;
    this.#left = totalMs;
    this.#onEnd = onEnd;
    this.#arm();
  }

  /** The server has said something. */
  restart() {
    if (this.#stops === 0 && this.#timer !== undefined) {
      this.#pause();
      this.#arm();
    }
  }

  /** A question is open. */
  stop() {
    if (this.#stops++ === 0) this.#pause();
  }

  /** It is answered: the server has its whole time again. */
  go() {
    if (this.#stops > 0 && --this.#stops === 0) this.#arm();
  }

  end() {
    this.#stops = Infinity;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #pause() {
    this.#left -= performance.now() - this.#since;
    clearTimeout(this.#timer);
  }

  #arm() {
    this.#since = performance.now();
    this.#timer = setTimeout(this.#onEnd, Math.min(this.#silence, Math.max(this.#left, 0), LONGEST));
  }
}
