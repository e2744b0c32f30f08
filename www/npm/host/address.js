// @ts-check
// Which addresses lead to this machine, or into a network that nobody outside sees.

/** Addresses of this machine. @param {URL} address */
export const isLocal = ({ hostname }) => /^((.*\.)?localhost\.?|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** Addresses of private networks, of links, and those that stand for nothing or for many. */
const PRIVATE = /^(10\.|192\.(0\.0|168)\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|198\.1[89]\.|0\.|2[2-5]\d\.|\[(::|f[cdef]|64:ff9b:|2002:))/;
/** Names that only a private network knows: without a dot, or under a domain that is kept for them. */
const INTERNAL = /^[^.[]+\.?$|\.(local|internal|intranet|lan|home|corp|private|home\.arpa)\.?$/;

/** @param {URL} address */
export const isPrivate = ({ hostname }) => PRIVATE.test(hostname);

/** Whether a stranger may name an address that this machine may fetch: encrypted, without a password, of a public name. @param {unknown} url */
export function isPublicAddress(url) {
  if (typeof url !== "string" || !/^https:\/\/[^/]/.test(url) || !URL.canParse(url)) return false;
  const address = new URL(url);
  return !isLocal(address) && !isPrivate(address) && !INTERNAL.test(address.hostname) && address.username === "" && address.password === "";
}
