// @ts-check
// Which object a request is for.

import { checkNames, complain, kindOf, misuse } from "../shared.js";
import { json } from "../server/errors.js";

/** @import { ObjectNamespace } from "../cloudflare.js" */

/** How long a name may be. */
const MAX_NAME = 256;

/**
 * Passes a request for PREFIX/NAME/… to the object with that name. Everything else is not ours.
 * @param {Request} request @param {ObjectNamespace} namespace @param {import("../cloudflare.js").RouteOptions} [options]
 * @returns {Promise<Response> | undefined}
 */
export function route(request, namespace, options = {}) {
  if (typeof request?.url !== "string") throw misuse(`route takes a Request, got ${kindOf(request)}`);
  if (typeof namespace?.idFromName !== "function" || typeof namespace.get !== "function") throw misuse(`route takes a namespace of Durable Objects, such as env.CHAT, got ${kindOf(namespace)}; is it bound in wrangler.jsonc (durable_objects.bindings)?`);
  checkNames("unknown option of route", options, ["prefix", "authorize"]);
  const { prefix = "/agents", authorize } = options;
  if (authorize !== undefined && typeof authorize !== "function") throw misuse(`\`authorize\` must be a function (request, name) that says whether who asks may use this agent, got ${kindOf(authorize)}`);
  if (typeof prefix !== "string" || (prefix !== "" && !prefix.startsWith("/"))) throw misuse(`\`prefix\` must be a path that begins with "/", got ${typeof prefix === "string" ? JSON.stringify(prefix) : kindOf(prefix)}`);
  const base = `${prefix.replace(/\/+$/, "")}/`;
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(base)) return undefined;
  const [segment = ""] = pathname.slice(base.length).split("/");
  if (segment === "") return undefined;
  const name = decoded(segment);
  if (name === undefined || name.length > MAX_NAME) return Promise.resolve(refusal(`the name of an agent must be at most ${MAX_NAME} characters, encoded as in a URL`));
  const pass = () => namespace.get(namespace.idFromName(name)).fetch(request);
  // A browser sends nothing with the question whether it may ask, so nobody could answer for it.
  if (!authorize || request.method === "OPTIONS") return pass();
  return allowed(authorize, request, name).then((answer) => (answer === true ? pass() : answer));
}

/** True, or the answer for somebody who may not. What is no yes is a no, also what it throws. @param {NonNullable<import("../cloudflare.js").RouteOptions["authorize"]>} authorize @param {Request} request @param {string} name */
async function allowed(authorize, request, name) {
  try {
    const answer = await authorize(request, name);
    if (answer === true || answer instanceof Response) return answer;
    if (answer && typeof answer !== "boolean") console.error(`turnwheel: \`authorize\` of route must give true, false or a Response, got ${kindOf(answer)}; nobody was let in`);
  } catch (error) {
    complain("turnwheel: `authorize` of route threw, so nobody was let in", error);
  }
  return json({ error: { code: "auth", message: "who asks may not use this agent" } }, 401);
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
