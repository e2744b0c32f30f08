// @ts-check
// One error type, recognised across copies of the package.

const MARK = Symbol.for("turnwheel.AgentError");

/**
 * An error of the engine: `code` is its kind, `info` its plain form, `cause` the very object that was thrown.
 */
export class AgentError extends Error {
  /**
   * @param {import("../index.js").ErrorInfo} info
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

  /**
   * `instanceof` accepts errors of other copies too; a subclass uses the usual check.
   * @param {unknown} value
   */
  static [Symbol.hasInstance](value) {
    // A class that refers to itself by name gets renamed by the bundler, and its errors
    // would print with that name.
    return Object.hasOwn(this, "isInstance") ? this.isInstance(value) : Function.prototype[Symbol.hasInstance].call(this, value);
  }
}

/** @param {string} message @param {unknown} [cause] */
export function misuse(message, cause) {
  return new AgentError({ code: "misuse", message, retryable: false }, cause);
}

/** Makes the error for an engine that is broken or missing. @param {string} message @param {unknown} cause */
export function broken(message, cause) {
  return new AgentError({ code: "internal", message, retryable: false, phase: "engine" }, cause);
}

/** The wasm side throws an ErrorInfo as JSON. @param {unknown} thrown */
export function fromEngine(thrown) {
  if (typeof thrown === "string" && thrown.startsWith("{")) return new AgentError(JSON.parse(thrown));
  if (AgentError.isInstance(thrown)) return thrown;
  const text = textOf(thrown);
  // The browsers' own message suggests a directive that allows far more.
  const isPolicy = /\bCSP\b|content.security/i.test(text);
  return broken(isPolicy ? "the page's Content-Security-Policy refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'" : text, thrown);
}

/**
 * Converts a value to JSON, or throws a misuse error that says why it cannot.
 * @param {string} what the start of the message: "the message is" @param {any} value @returns {string}
 */
export function jsonOf(what, value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw misuse(`${what} no JSON: ${textOf(error)}`, error);
  }
}

/** The message of whatever was thrown. @param {unknown} thrown @returns {string} */
export function textOf(thrown) {
  try {
    const isObject = typeof thrown === "object" && thrown !== null;
    // `message` may be anything; the engine takes strings only.
    return String(thrown instanceof Error ? thrown.message || thrown.name : !isObject ? thrown : "message" in thrown ? thrown.message : JSON.stringify(thrown));
  } catch {
    return "an object was thrown";
  }
}

/** The plain form of whatever a model's streamFn threw. @param {unknown} thrown */
export function infoOf(thrown) {
  const message = textOf(thrown);
  try {
    if (AgentError.isInstance(thrown)) return thrown.info;
    const { code, retryable, retryAfterMs } = /** @type {any} */ (thrown ?? {});
    // A code that the engine does not know has no effect there.
    return { message, ...(typeof code === "string" && { code }), ...(typeof retryable === "boolean" && { retryable }), ...(typeof retryAfterMs === "number" && { retryAfterMs }) };
  } catch {
    return { message };
  }
}

/** Names the type of a value for error messages. @param {unknown} value */
export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  const kind = typeof value;
  return kind === "undefined" ? "nothing" : kind === "object" ? `an object (${value?.constructor?.name ?? "no prototype"})` : `a ${kind}`;
}

/** Whether an object is an instance of a class rather than a plain object. @param {object} value */
export function isOfClass(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
}

/**
 * Finds the most similar of some names, if one is close enough: by edit distance, or because one contains
 * the other. For a path, its last name counts.
 * @param {string} word @param {Iterable<string>} names
 */
export function didYouMean(word, names) {
  const given = word.toLowerCase();
  let best = "";
  let fewest = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const path of names) {
    const name = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
    const isPart = Math.min(given.length, name.length) > 3 && (name.includes(given) || given.includes(name));
    const edits = isPart ? Math.min(2, distance(given, name)) : distance(given, name);
    if (edits < fewest) [best, fewest] = [path, edits];
  }
  return best && `; did you mean \`${best}\`?`;
}

/**
 * Shows a value in an error message: strings, numbers and booleans literally, others by type.
 * @param {unknown} value
 */
export function shownOf(value) {
  return typeof value === "string" ? JSON.stringify(value) : typeof value === "number" || typeof value === "boolean" ? String(value) : kindOf(value);
}

/**
 * Throws if an object has a name that is not known.
 * @param {string} where what precedes the name in the message @param {object} given
 * @param {object} known an array of names, or an object with them
 * @param {Iterable<string>} [likely] names that may have been meant
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
