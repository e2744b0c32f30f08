// @ts-check
// Several copies of the package in one process: a second one by pnpm, by a chunk that a bundler lets import the page's script
// under another address, by a test's module registry. Copies of one version work together: their objects know each other by
// symbols of the registry, and state of which there is one in a process is shared. A copy of another version is named.

import { misuse } from "../errors/errors.js";
import { kindOf } from "../errors/names.js";

/** The version of the package. */
export const VERSION = "0.1.0";

const SHARED = Symbol.for(`turnwheel ${VERSION}`);

/** State that the copies of this version share, by name. @type {Record<string, any>} */
export const common = (/** @type {any} */ (globalThis)[SHARED] ??= {});

/** The key under which public objects hold their implementation. @type {unique symbol} */
export const CORE = Symbol.for("turnwheel.core");

/** Vue makes no reactive proxy of an object with this member; behind one, an agent would not be the same object as itself. */
export const NOT_REACTIVE = "__v_skip";

/** Keeps the implementation of a public object out of logs and copies. @param {object} object */
export function hideCore(object) {
  Object.defineProperty(object, CORE, { enumerable: false });
}

/**
 * The implementation of a public object, of whichever copy of this version.
 * @param {any} object @param {string} wanted for the error, such as "an agent" @returns {any}
 */
export function coreIn(object, wanted) {
  const core = object?.[CORE];
  if (!core) throw misuse(`${wanted} of turnwheel is needed, got ${kindOf(object)}`);
  checkVersion(wanted, core.version);
  return core;
}

/** Refuses what another version of the package has made. @param {string} subject @param {unknown} version */
export function checkVersion(subject, version) {
  if (version !== VERSION) throw misuse(`${subject} was made by turnwheel ${version}, and this copy is turnwheel ${VERSION}: install one version; \`npm ls turnwheel\` names the packages that need each`);
}
