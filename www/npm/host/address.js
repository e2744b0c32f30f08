// @ts-check
// Which addresses lead to this machine, or into a network that nobody outside sees.

/** Addresses of this machine. @param {URL} address */
export const isLocal = ({ hostname }) => /^((.*\.)?localhost(\.localdomain|6\.localdomain6)?\.?|127(\.\d+){3}|\[::1\])$/.test(hostname);

const IPV4 = /^\d+(\.\d+){3}$/;
/** IPv4 addresses of private networks, of links, of examples, and those that stand for nothing or for many. */
const PRIVATE4 = /^(0|10|192\.(0\.[02]|168)|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|198\.(1[89]|51\.100)|203\.0\.113|22[4-9]|23\d|24\d|25[0-5])\./;
/** The same of IPv6, with those that hold an IPv4 address. */
const PRIVATE6 = /^\[(::|f[cdef]|64:ff9b:|2002:|2001:(0?:|db8:)|100::)/;
/** Names that only a private network knows: without a dot, or under a domain that is kept for them. */
const INTERNAL = /^[^.[]+\.?$|\.(local|internal|intranet|lan|home|corp|private|home\.arpa|localdomain6?|svc|test|onion)\.?$|^metadata\.goog\.?$|\.\.|^\./;

/** @param {URL} address */
export const isPrivate = ({ hostname }) => (IPV4.test(hostname) ? PRIVATE4 : PRIVATE6).test(hostname);

/** Whether an address leads to this machine or into a private network, as far as it says so itself. @param {URL} address */
export const isInward = (address) => isLocal(address) || isPrivate(address) || INTERNAL.test(address.hostname);

/** Whether a stranger may name an address that this machine may fetch: encrypted, without a password, of a public name. @param {unknown} url */
export function isPublicAddress(url) {
  // Whoever reads it must read the same: no blank, no line end, no backslash, nobody before the host.
  if (typeof url !== "string" || !/^https:\/\/[^/?#@][^?#@/]*([/?#]|$)/.test(url) || /[\s\\\p{Cc}]/u.test(url) || !URL.canParse(url)) return false;
  return !isInward(new URL(url));
}
