// @ts-check
// A tape as a part of an address, and back. What stands after the # is sent to no server.

/** A longer address is cut by some programs that pass it on. */
export const MOST_CHARACTERS = 30_000;
/** What a link of strangers may become in memory. */
const MOST_BYTES = 4_000_000;
const MARK = "#tape=";

/** @param {ReadableStream<any>} stream @param {number} most @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function read(stream, most) {
  /** @type {Uint8Array[]} */
  const pieces = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
    if (length > most) {
      void reader.cancel().catch(() => {});
      throw new Error(`the tape in this link is longer than ${most / 1e6} MB; ask for it as a file`);
    }
  }
  return new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (pieces)).arrayBuffer());
}

/** @param {string} text of a tape @returns {Promise<string>} the part of an address */
export async function fragmentOf(text) {
  const bytes = await read(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")), Infinity);
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const fragment = MARK + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  if (fragment.length <= MOST_CHARACTERS) return fragment;
  throw new Error(`the tape makes a link of ${fragment.length.toLocaleString("en")} characters, and more than ${MOST_CHARACTERS.toLocaleString("en")} are cut on the way; save it as a file, with the button beside this one`);
}

/** Whether an address has a tape. @param {string} hash */
export const hasTape = (hash) => hash.startsWith(MARK);

/** @param {string} hash @returns {Promise<string>} the text of the tape */
export async function tapeIn(hash) {
  const broken = "this link holds no whole tape: it was cut or changed on the way; ask for it once more, or for the file";
  if (hash.length > MOST_CHARACTERS) throw new Error(`this link has more than ${MOST_CHARACTERS.toLocaleString("en")} characters; ask for the tape as a file`);
  let bytes;
  try {
    bytes = Uint8Array.from(atob(hash.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  } catch {
    throw new Error(broken);
  }
  try {
    return new TextDecoder().decode(await read(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")), MOST_BYTES));
  } catch (error) {
    throw error instanceof TypeError ? new Error(broken) : error;
  }
}
