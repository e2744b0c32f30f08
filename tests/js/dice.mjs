// @ts-check
// Reproducible randomness: the same seed gives the same numbers.

/** @param {number} seed @returns {(sides: number) => number} from 0 to below `sides` */
export function dice(seed) {
  let state = (seed * 0x9e3779b9) >>> 0 || 1;
  return (sides) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor(((state >>> 0) / 2 ** 32) * sides);
  };
}
