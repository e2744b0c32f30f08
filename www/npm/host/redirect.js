// @ts-check
// Where a redirect may be followed. A request holds a key, headers or a prompt that were meant for one origin, so it is sent
// on within that origin at most, and only where the host shows where that is.

/** How often a request is sent on. */
export const MAX_REDIRECTS = 5;

/** These send the same request again; the others would make a GET of it, without its body. */
const SAME_REQUEST = [307, 308];
const REDIRECTS = [301, 302, 303, ...SAME_REQUEST];

/** Whether a response sends the request elsewhere, or hides that it does. @param {Response} response */
export const isRedirect = ({ status, type }) => type === "opaqueredirect" || REDIRECTS.includes(status);

/**
 * Returns the address to send the request to again, if that is allowed.
 * @param {Response} response @param {string} url the address that gave it @param {boolean} isGet
 * @returns {string | undefined}
 */
export function nextAddress({ status, headers }, url, isGet) {
  if (!isServer() || !(isGet ? REDIRECTS : SAME_REQUEST).includes(status)) return;
  const to = addressOf(headers.get("location"), url);
  return to && to.origin === new URL(url).origin && !to.username && !to.password ? to.href : undefined;
}

/**
 * Returns the origin to which a `fetch` of the host has followed a redirect, although it was told not to.
 * @param {Response} response @param {string} url the address of the request
 */
export function followedTo(response, url) {
  const to = response.redirected ? addressOf(response.url, url) : undefined;
  return to && to.origin !== new URL(url).origin ? to.origin : undefined;
}

/** @param {string | null} text @param {string} base */
export function addressOf(text, base) {
  try {
    return text ? new URL(text, base) : undefined;
  } catch {
    // Then nobody can follow it.
  }
}

/** Node, Deno and Bun. Pages and Workers refuse every redirect: a page cannot see where it points. */
function isServer() {
  const { process, location, navigator } = /** @type {{ process?: { versions?: { node?: string } }, location?: unknown, navigator?: { userAgent?: string } }} */ (globalThis);
  return !!process?.versions?.node && !location && navigator?.userAgent !== "Cloudflare-Workers";
}
