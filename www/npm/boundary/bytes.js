// @ts-check
// Bytes that a host gives.

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const { get: tag } = /** @type {{ get(): string | undefined }} */ (Object.getOwnPropertyDescriptor(typedArray, Symbol.toStringTag));
const { get: length } = /** @type {{ get(): number }} */ (Object.getOwnPropertyDescriptor(typedArray, "length"));

/**
 * How many bytes an array has, whatever it says of itself; nothing if it is no array of bytes. What is copied into the
 * engine's memory must fit there, and bytes that were never written must not be read: they were another run's. An array
 * whose memory was handed on meanwhile has none.
 * @param {unknown} bytes @returns {number | undefined}
 */
export const lengthOf = (bytes) => (tag.call(bytes) === "Uint8Array" ? length.call(bytes) : undefined);

const subarray = Uint8Array.prototype.subarray;

/** A piece of bytes, without a copy. @param {Uint8Array} bytes @param {number} from @param {number} to @returns {Uint8Array} */
export const pieceOf = (bytes, from, to) => subarray.call(bytes, from, to);

/** The events of a stream that end in these bytes, and what follows. @param {Uint8Array} bytes @returns {Uint8Array[]} */
export function blocksOf(bytes) {
  const length = lengthOf(bytes) ?? 0;
  const blocks = [];
  let from = 0;
  for (let at = 1; at < length; at++) {
    // A line that is empty, however lines end.
    if (bytes[at] !== 10 || (bytes[at - 1] !== 10 && (bytes[at - 1] !== 13 || bytes[at - 2] !== 10))) continue;
    blocks.push(pieceOf(bytes, from, at + 1));
    from = at + 1;
  }
  return from < length || from === 0 ? [...blocks, pieceOf(bytes, from, length)] : blocks;
}
