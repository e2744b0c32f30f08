// @ts-check
// Seals checkpoints, so that whoever can write to a store cannot forge one: the text of the checkpoint with its HMAC
// (SHA-256). It is not encrypted.

import { isSealed, jsonOf, kindOf, misuse, SEALED, textOf } from "../shared.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { SealedCheckpoint, SealKey, SealOptions } from "../stores.js" */

const VERSION = 1;
/** As long as what SHA-256 gives: a shorter key is easier to guess than a forged code. */
const MIN_KEY_BYTES = 32;
const HMAC = { name: "HMAC", hash: "SHA-256" };

/**
 * Seals a checkpoint with a key, or with the first of several.
 * @param {Checkpoint} checkpoint @param {SealKey | readonly SealKey[]} key @param {SealOptions} [options] @returns {Promise<SealedCheckpoint>}
 */
export async function seal(checkpoint, key, options) {
  if (isSealed(checkpoint)) throw misuse("the checkpoint is sealed already");
  if (!Array.isArray(checkpoint?.messages)) throw misuse(`seal takes what checkpoint() gives, got ${kindOf(checkpoint)}`);
  // Before anything is awaited: what happens to the object meanwhile is not part of it.
  const text = jsonOf("the checkpoint is", checkpoint);
  const bytes = sealedBytes(text, options);
  const [first] = keysOf(key);
  const code = await subtle().sign("HMAC", await importKey(first, "sign"), bytes);
  return { format: SEALED, version: VERSION, checkpoint: text, mac: hexOf(new Uint8Array(code)) };
}

/**
 * Checks a sealed checkpoint with a key, or with each of several, and returns what was sealed.
 * @param {SealedCheckpoint | Checkpoint | string | undefined} sealed @param {SealKey | readonly SealKey[]} key @param {SealOptions} [options] @returns {Promise<Checkpoint>}
 */
export async function unseal(sealed, key, options) {
  const { checkpoint, mac } = parse(sealed);
  const bytes = sealedBytes(checkpoint, options);
  for (const each of keysOf(key)) {
    // The platform compares in a time that says nothing of the code.
    if (await subtle().verify("HMAC", await importKey(each, "verify"), mac, bytes)) return JSON.parse(checkpoint);
  }
  throw misuse("the seal does not fit: the checkpoint was changed, or was sealed with another key or for another `context`");
}

/**
 * What the code is made of. As JSON no part of it can run into another, and half a surrogate pair is written out.
 * @param {string} text @param {SealOptions} [options]
 */
function sealedBytes(text, options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`the options of a seal are { context }, got ${kindOf(options)}`);
  const unknown = Object.keys(options).find((name) => name !== "context");
  if (unknown !== undefined) throw misuse(`unknown option \`${unknown}\` of a seal; there is \`context\``);
  const { context = null } = options;
  // A user whose id is missing must not become nobody in particular.
  if ("context" in options && (typeof context !== "string" || context === "")) throw misuse(`\`context\` must be a text, such as the id of the user, got ${context === "" ? "an empty one" : kindOf(options.context)}`);
  return new TextEncoder().encode(JSON.stringify([SEALED, VERSION, context, text]));
}

/** @param {unknown} given */
function parse(given) {
  let sealed = /** @type {any} */ (given);
  if (typeof given === "string") {
    try {
      sealed = JSON.parse(given);
    } catch (error) {
      throw misuse(`the sealed checkpoint is no JSON: ${textOf(error)}`);
    }
  }
  const { version, checkpoint, mac } = Object(sealed);
  if (!isSealed(sealed)) {
    const what = Array.isArray(sealed?.messages) ? "a checkpoint that is not sealed: anybody may have written it" : kindOf(sealed);
    throw misuse(`unseal takes what seal gave, got ${what}`);
  }
  if (version !== VERSION) throw misuse(`the checkpoint is sealed in version ${JSON.stringify(version) ?? "none"}, this turnwheel reads ${VERSION}`);
  const code = typeof mac === "string" && /^(?:[\da-f]{2}){32}$/.test(mac) ? Uint8Array.from(mac.match(/../g) ?? [], (byte) => parseInt(byte, 16)) : undefined;
  if (typeof checkpoint !== "string" || !code) throw misuse("the sealed checkpoint is damaged: its `checkpoint` must be a text, and its `mac` 64 hexadecimal digits");
  return { checkpoint, mac: code };
}

/** @param {SealKey | readonly SealKey[]} given */
function keysOf(given) {
  const keys = Array.isArray(given) ? given : [given];
  if (keys.length === 0) throw misuse("the list of keys is empty: nothing could be sealed or unsealed with it");
  return keys;
}

/** @param {any} key @param {"sign" | "verify"} usage @returns {Promise<CryptoKey>} */
async function importKey(key, usage) {
  if (typeof CryptoKey !== "undefined" && key instanceof CryptoKey) {
    const { name, hash, length } = /** @type {HmacKeyAlgorithm} */ (key.algorithm);
    if (name !== "HMAC" || hash?.name !== "SHA-256" || length < MIN_KEY_BYTES * 8) throw misuse(`a key for sealing is one for HMAC with SHA-256 of ${MIN_KEY_BYTES * 8} bits or more, got ${name}${hash ? ` with ${hash.name}` : ""}${length ? ` of ${length} bits` : ""}`);
    if (!key.usages.includes(usage)) throw misuse(`the key may not be used to ${usage}; its usages are ${key.usages.join(", ") || "none"}`);
    return key;
  }
  if (!ArrayBuffer.isView(key) && !(key instanceof ArrayBuffer)) throw misuse(`a key for sealing is ${MIN_KEY_BYTES} bytes or more, such as crypto.getRandomValues(new Uint8Array(${MIN_KEY_BYTES})), or a CryptoKey, got ${kindOf(key)}`);
  const bytes = key instanceof ArrayBuffer ? new Uint8Array(key.slice(0)) : new Uint8Array(key.buffer, key.byteOffset, key.byteLength).slice();
  if (bytes.length < MIN_KEY_BYTES) throw misuse(`a key for sealing is ${MIN_KEY_BYTES} bytes or more, got ${bytes.length}`);
  if (bytes.every((byte) => byte === bytes[0])) throw misuse("a key for sealing must be random, got the same byte throughout");
  return subtle().importKey("raw", bytes, HMAC, false, [usage]);
}

/** Web Crypto, where there is one. */
function subtle() {
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) throw misuse("sealing needs Web Crypto (crypto.subtle), which a page has over HTTPS or on localhost only");
  return subtle;
}

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
