// @ts-check
// One error type, recognisable across copies of the package.

const MARK = Symbol.for("turnwheel.AgentError");

/** An error of the engine: `code` says what kind, `info` is its plain form, `cause` the very object that was thrown. */
export class AgentError extends Error {
  /**
   * @param {import("./index.js").ErrorInfo} info
   * @param {unknown} [cause]
   */
  constructor(info, cause) {
    super(info.message, cause === undefined ? undefined : { cause });
    this.name = "AgentError";
    this.code = info.code;
    this.info = info;
    if (info.phase !== undefined) this.phase = info.phase;
    Object.defineProperty(this, MARK, { value: true });
  }

  /** @param {unknown} value @returns {value is AgentError} */
  static isInstance(value) {
    return typeof value === "object" && value !== null && /** @type {any} */ (value)[MARK] === true;
  }

  /** `instanceof` knows those of other copies too; a class made of this one goes its own way. @param {unknown} value */
  static [Symbol.hasInstance](value) {
    // A class that names itself gets another name in the bundle, and its errors are printed with that.
    return Object.hasOwn(this, "isInstance") ? this.isInstance(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

/** @param {string} message @param {unknown} [cause] */
export function misuse(message, cause) {
  return new AgentError({ code: "misuse", message, retryable: false }, cause);
}

/** The engine itself is broken, or is not there. @param {string} message @param {unknown} cause */
export function broken(message, cause) {
  return new AgentError({ code: "internal", message, retryable: false, phase: "engine" }, cause);
}

/** What the wasm side throws is the JSON of an ErrorInfo. @param {unknown} thrown */
export function fromEngine(thrown) {
  if (typeof thrown === "string" && thrown.startsWith("{")) return new AgentError(JSON.parse(thrown));
  if (AgentError.isInstance(thrown)) return thrown;
  const own = textOf(thrown);
  // What browsers say of it names a switch that allows much more.
  const isPolicy = /\bCSP\b|content.security/i.test(own);
  return broken(isPolicy ? "the page's Content-Security-Policy refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'" : own, thrown);
}

/** A value as JSON; where it is none, misuse that says why. @param {string} what begins the words: "the message is" @param {any} value @returns {string} */
export function jsonOf(what, value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw misuse(`${what} no JSON: ${textOf(error)}`, error);
  }
}

/** The words of whatever was thrown. @param {unknown} thrown @returns {string} */
export function textOf(thrown) {
  try {
    const isObject = typeof thrown === "object" && thrown !== null;
    // Whatever somebody put there: the engine takes texts alone.
    return String(thrown instanceof Error ? thrown.message || thrown.name : !isObject ? thrown : "message" in thrown ? thrown.message : JSON.stringify(thrown));
  } catch {
    return "an object was thrown";
  }
}

/** The plain form of whatever was thrown by a model's streamFn. @param {unknown} thrown */
export function infoOf(thrown) {
  const message = textOf(thrown);
  try {
    if (AgentError.isInstance(thrown)) return thrown.info;
    const { code, retryable, retryAfterMs } = /** @type {any} */ (thrown ?? {});
    // A code that the engine does not know says nothing to it.
    return { message, ...(typeof code === "string" && { code }), ...(typeof retryable === "boolean" && { retryable }), ...(typeof retryAfterMs === "number" && { retryAfterMs }) };
  } catch {
    return { message };
  }
}

/** Names what was got, for error messages. @param {unknown} value */
export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  const kind = typeof value;
  return kind === "undefined" ? "nothing" : kind === "object" ? `an object (${value?.constructor?.name ?? "no prototype"})` : `a ${kind}`;
}

/** Whether an object is one of a class, and no plain one. @param {object} value */
export function isOfClass(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
}

/**
 * The nearest of some names, if one is near: by its letters, or because the word is a part of it. Of a path the last name
 * counts.
 * @param {string} word @param {Iterable<string>} names
 */
export function didYouMean(word, names) {
  const given = word.toLowerCase();
  let best = "";
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const path of names) {
    const name = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
    const isPart = Math.min(given.length, name.length) > 3 && (name.includes(given) || given.includes(name));
    const d = isPart ? Math.min(2, distance(given, name)) : distance(given, name);
    if (d < least) [best, least] = [path, d];
  }
  return best && `; did you mean \`${best}\`?`;
}

/** What was got, as one would write it where it is short. @param {unknown} value */
export function shownOf(value) {
  return typeof value === "string" ? JSON.stringify(value) : typeof value === "number" || typeof value === "boolean" ? String(value) : kindOf(value);
}

/**
 * Refuses names that nobody knows.
 * @param {string} where what is said before the name @param {object} given @param {object} known a list of names, or an object with them
 * @param {Iterable<string>} [likely] names that may be meant
 */
export function checkNames(where, given, known, likely = Array.isArray(known) ? known : Object.keys(known)) {
  if (typeof given !== "object" || given === null) throw misuse(`what may have ${[...likely].join(", ")} must be an object, got ${kindOf(given)}`);
  for (const name of Object.keys(given)) {
    if (!(Array.isArray(known) ? known.includes(name) : Object.hasOwn(known, name))) throw misuse(`${where}${where.endsWith(".") ? "" : " `"}${name}\`${didYouMean(name, likely)}`);
  }
}

/** @param {string} a @param {string} b */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}
