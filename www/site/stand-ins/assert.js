// What the programs of the docs use of Node's `assert`.
import { inspect } from "../print.js";

/** @param {boolean} isFine @param {string} message */
function check(isFine, message) {
  if (!isFine) throw new Error(message);
}

const differ = (/** @type {unknown} */ a, /** @type {unknown} */ b) => `${inspect(a)} is not ${inspect(b)}`;

export default {
  ok: (/** @type {unknown} */ value) => check(Boolean(value), `${inspect(value)} is not true`),
  equal: (/** @type {unknown} */ a, /** @type {unknown} */ b) => check(Object.is(a, b), differ(a, b)),
  deepEqual: (/** @type {unknown} */ a, /** @type {unknown} */ b) => check(inspect(a) === inspect(b), differ(a, b)),
  match: (/** @type {string} */ text, /** @type {RegExp} */ form) => check(form.test(text), `${inspect(text)} does not match ${form}`),
};
