// @ts-check
// Which object a request is for.

import { checkNames, kindOf, misuse } from "../shared.js";
import { json } from "../server/errors.js";

/** @import { ObjectNamespace } from "../cloudflare.js" */

/** How long a name may be. */
const MAX_NAME = 256;

/**
 * Passes a request for PREFIX/NAME/… to the object with that name. Everything else is not ours.
 * @param {Request} request @param {ObjectNamespace} namespace @param {{ prefix?: string }} [options]
 * @returns {Promise<Response> | undefined}
 */
export function route(request, namespace, options = {}) {
  if (typeof request?.url !== "string") throw misuse(`route takes a Request, got ${kindOf(request)}`);
  if (typeof namespace?.idFromName !== "function" || typeof namespace.get !== "function") throw misuse(`route takes a namespace of Durable Objects, such as env.CHAT, got ${kindOf(namespace)}; is it bound in wrangler.jsonc (durable_objects.bindings)?`);
  checkNames("unknown option of route", options, ["prefix"]);
  const { prefix = "/agents" } = options;
  if (typeof prefix !== "string" || (prefix !== "" && !prefix.startsWith("/"))) throw misuse(`\`prefix\` must be a path that begins with "/", got ${typeof prefix === "string" ? JSON.stringify(prefix) : kindOf(prefix)}`);
  const base = `${prefix.replace(/\/+$/, "")}/`;
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(base)) return undefined;
  const [segment = ""] = pathname.slice(base.length).split("/");
  if (segment === "") return undefined;
  const name = decoded(segment);
  if (name === undefined || name.length > MAX_NAME) return Promise.resolve(refusal(`the name of an agent must be at most ${MAX_NAME} characters, encoded as in a URL`));
  return namespace.get(namespace.idFromName(name)).fetch(request);
}

/** @param {string} segment */
function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** @param {string} message */
const refusal = (message) => json({ error: { code: "invalid_request", message } }, 400);
