// @ts-check
// Recorded answers of providers: where they are, and how they are given to a `fetch`.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** The paths of all cases, without their file endings. @param {string} dir @returns {string[]} */
export const find = (dir) => [...new Set(readdirSync(dir).flatMap((name) => {
  const path = join(dir, name);
  return statSync(path).isDirectory() ? find(path) : /\.(expect\.json|sse|http\.json)$/.test(name) ? [path.replace(/\.(expect\.json|sse|http\.json)$/, "")] : [];
}))];

/** @param {string} path */
export const json = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (/** @type {any} */ error) {
    throw new Error(error.code ? error.message : `${path} is no JSON: ${error.message}`);
  }
};

/** A case: what is expected, and a function that gives the answer, its body in pieces. @param {string} path */
export function readCase(path) {
  const expected = json(`${path}.expect.json`);
  const body = existsSync(`${path}.sse`) ? readFileSync(`${path}.sse`) : undefined;
  const error = body ? undefined : json(`${path}.http.json`);
  return { expected, body, answer: (size = Infinity) => (body ? streamed(body, Math.min(size, body.length)) : refused(error)) };
}

/** A server's response, its body in pieces. @param {Uint8Array} body @param {number} size */
function streamed(body, size) {
  let at = 0;
  return new Response(new ReadableStream({
    pull(controller) {
      if (at >= body.length) return controller.close();
      controller.enqueue(body.slice(at, at + size));
      at += size;
    },
  }), { headers: { "content-type": "text/event-stream" } });
}

/** @param {{ status: number, headers?: Record<string, string>, body: any }} answer */
const refused = ({ status, headers = {}, body }) =>
  new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers: Object.entries(headers).map(([name, value]) => [name, String(value)]) });
