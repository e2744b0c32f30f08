// @ts-check
// One error type, recognised across copies of the package.

/** @import { ErrorInfo } from "../index.js" */

const MARK = Symbol.for("turnwheel.AgentError");

/**
 * An error of the engine: `code` is its kind, `info` its plain form, `cause` the very object that was thrown.
 */
export class AgentError extends Error {
  /**
   * @param {ErrorInfo} info
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
    try {
      return typeof value === "object" && value !== null && /** @type {{ [MARK]?: true }} */ (value)[MARK] === true;
    } catch {
      // A host may throw anything, a revoked Proxy too.
      return false;
    }
  }

  /**
   * `instanceof` accepts errors of other copies too; a subclass uses the usual check.
   * @override @param {unknown} value
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
  const info = typeof thrown === "string" && thrown.startsWith("{") && parsed(thrown);
  if (info) return new AgentError(info);
  if (AgentError.isInstance(thrown)) return thrown;
  const text = textOf(thrown);
  // The browsers' own message suggests a directive that allows far more.
  const isPage = /magic (word|number|header)|doesn't start with|wasm magic/i.test(text);
  if (isPage) return broken(`what was loaded is no wasm file, but perhaps a page that says it is not there; is the address that of turnwheel.wasm? (${text})`, thrown);
  const isPolicy = /\bCSP\b|content.security/i.test(text);
  return broken(isPolicy ? "the page's Content-Security-Policy refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'" : text, thrown);
}

/** @param {string} json @returns {ErrorInfo | undefined} */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    // Host code may throw any text.
  }
}

/**
 * Writes to the console what nobody else would hear of. An error that cannot be shown is shown as its text.
 * @param {string} message @param {unknown} error
 */
export function complain(message, error) {
  quiet(error);
  try {
    console.error(message, error);
  } catch {
    console.error(message, textOf(error));
  }
}

/**
 * Converts a value to JSON, or throws a misuse error that says why it cannot.
 * @param {string} what the start of the message: "the message is" @param {unknown} value @returns {string}
 */
export function jsonOf(what, value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw misuse(`${what} no JSON: ${textOf(error)}`, error);
  }
}

/**
 * Options for the engine: JSON has no Infinity, and a missing value would mean the default.
 * @template {Record<string, unknown>} T @param {T} options @returns {T}
 */
export function withoutInfinity(options) {
  return /** @type {T} */ (Object.fromEntries(Object.entries(options).map(([name, value]) => [name, value === Infinity ? 2 ** 53 : value])));
}

/** The message of whatever was thrown, with what it says of why. @param {any} thrown @returns {string} */
export function textOf(thrown) {
  const text = wordsOf(thrown);
  const more = [...new Set(reasonsOf(thrown, 0))].filter((each) => each !== "" && !text.includes(each));
  return more.length > 0 ? `${text} (${more.join("; ")})` : text;
}

/** What one reason may have of a text. */
const LONGEST_REASON = 500;

/** The words of the errors behind an error. Other objects are not shown: there may be anything in them. @param {any} thrown @param {number} depth @returns {string[]} */
function reasonsOf(thrown, depth) {
  try {
    if (!(thrown instanceof Error) || AgentError.isInstance(thrown) || depth > 2) return [];
    const { errors, cause } = /** @type {any} */ (thrown);
    return [errors, cause].flat().slice(0, 8).flatMap((each) => (typeof each === "string" ? each : each instanceof Error ? [wordsOf(each), ...reasonsOf(each, depth + 1)] : [])).map((each) => each.slice(0, LONGEST_REASON));
  } catch {
    return [];
  }
}

/** The message of whatever was thrown. @param {any} thrown @returns {string} */
function wordsOf(thrown) {
  quiet(thrown);
  try {
    if (typeof thrown !== "object" || thrown === null) return String(thrown);
    if (isPromise(thrown)) return "a promise was thrown; await it first";
    if (thrown[Symbol.toStringTag] === "Response") return `the response is ${`${thrown.status} ${thrown.statusText}`.trim()}`;
    // `message` may be anything; the engine takes strings only.
    return String(thrown instanceof Error ? thrown.message || nameOf(thrown) : "message" in thrown ? thrown.message : JSON.stringify(thrown));
  } catch {
    return "an object was thrown";
  }
}

/** Whether a value is a promise. Nobody awaits it where it does not belong, and then it must not end the process. @param {any} value */
export const isPromise = (value) => value instanceof Promise && (value.catch(() => {}), true);

/**
 * Marks the promises inside a value that is refused, or was thrown, as handled, too. It calls no getter: a value that
 * changes with each reading is read once, where it is used.
 * @param {any} value @param {Set<unknown>} [seen]
 */
export function quiet(value, seen = new Set()) {
  try {
    if (Object(value) !== value || isPromise(value) || ArrayBuffer.isView(value) || seen.size > 999 || seen.has(value)) return;
    seen.add(value);
    for (const member of Object.values(Object.getOwnPropertyDescriptors(value))) quiet(member.value, seen);
  } catch {
    // A proxy shows what it likes.
  }
}

/** What an error without a message is. @param {any} error */
const nameOf = ({ name, code }) => (typeof code === "string" ? `${name} ${code}` : name);

/** The plain form of whatever a model's streamFn or its `fetch` threw. @param {unknown} thrown @returns {Partial<ErrorInfo>} */
export function infoOf(thrown) {
  const message = textOf(thrown);
  try {
    // A copy without what is not JSON.
    if (AgentError.isInstance(thrown)) return { message, ...JSON.parse(JSON.stringify(thrown.info)) };
    const { code, retryable, retryAfterMs } = /** @type {{ code?: unknown, retryable?: unknown, retryAfterMs?: unknown }} */ (thrown ?? {});
    // A code that the engine does not know has no effect there.
    return { message, ...(typeof code === "string" && { code: /** @type {ErrorInfo["code"]} */ (code) }), ...(typeof retryable === "boolean" && { retryable }), ...(typeof retryAfterMs === "number" && { retryAfterMs }) };
  } catch {
    return { message };
  }
}

/** How runtimes word a mistake in the host's own code, and arguments that `fetch` does not take. */
const MISTAKE = /RequestInit|failed to (execute|construct|parse)|is not (an?|iterable)\b|propert|undefined|illegal invocation/i;

/** Whether a request failed before any server was asked, and will again. @param {any} error */
export const isMistake = (error) => error?.name === "ReferenceError" || (error?.name === "TypeError" && MISTAKE.test(error.message));
