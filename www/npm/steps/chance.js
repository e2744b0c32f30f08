// @ts-check
// Chance that repeats: numbers and ids that follow from a text.

/** Numbers and ids that are the same for the same seed, in the order in which they are asked for. */
export class Chance {
  /** @param {string} seed */
  constructor(seed) {
    this.state = 0x811c9dc5;
    for (let i = 0; i < seed.length; i++) this.state = Math.imul(this.state ^ seed.charCodeAt(i), 0x01000193);
  }

  /** 32 bits (splitmix). */
  #bits() {
    this.state = (this.state + 0x9e3779b9) | 0;
    let bits = this.state;
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return (bits ^ (bits >>> 15)) >>> 0;
  }

  /** A number from 0 on, below 1. */
  number() {
    return this.#bits() / 2 ** 32;
  }

  /** An id in the form of a UUID. */
  id() {
    const hex = Array.from({ length: 4 }, () => this.#bits().toString(16).padStart(8, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}
