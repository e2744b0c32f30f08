// @ts-check
// Keys are not in what an agent shows of a request. Should a host have put one into its own text, it is not drawn either.

const NAMES = /^(?:authorization|proxy-authorization|cookie|(?:x-)?(?:goog-)?api-?key|apikey|access-?token|secret|password)$/i;
const KEYS = /\b(?:sk|pk|rk|gsk|xai|ghp|gho|hf|AIza)[-_A-Za-z0-9]{16,}\b|\bBearer\s+[-._~+/A-Za-z0-9]{8,}=*/g;
const MASK = "•••";

/** A text without what looks like a key. @param {string} text */
export const maskText = (text) => text.replace(KEYS, (found) => (found.startsWith("Bearer") ? `Bearer ${MASK}` : MASK));

/** As JSON, without what looks like a key. @param {unknown} value @returns {string} */
export const maskedJson = (value) => JSON.stringify(value, (name, inner) => (NAMES.test(name) && typeof inner === "string" ? MASK : typeof inner === "string" ? maskText(inner) : inner), 2) ?? "";
