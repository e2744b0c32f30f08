// @ts-check
// What tabs say to each other: the requests of docs/remote.md and their answers, over a BroadcastChannel. Whatever else comes
// is dropped: a page of this origin may be an older one, or may run a script that nobody meant to.

/** @typedef {{ v: 1, type: "request", id: string, from: string, method: "GET" | "POST", path: string, body?: string }} Asked */
/** The one who asks wants another piece of the body, or no more. @typedef {{ v: 1, type: "more" | "cancel", id: string, from: string }} Follow */
/** Is anybody the owner? @typedef {{ v: 1, type: "ping", from: string }} Ping */
/** Who owns the agent says so, is about to, or leaves. @typedef {{ v: 1, type: "owner" | "soon" | "bye", epoch: number }} Told */
/** @typedef {{ v: 1, type: "head", id: string, epoch: number, status: number, headers: Record<string, string>, body?: string }} Head */
/** @typedef {{ v: 1, type: "piece", id: string, epoch: number, bytes: Uint8Array<ArrayBuffer> }} Piece */
/** @typedef {{ v: 1, type: "end", id: string, epoch: number }} End */
/** @typedef {Asked | Follow | Ping | Told | Head | Piece | End} Message */

/** The longest piece of an answer that is taken: one letter of the server's has three bytes at most, and an event ends as a whole. */
const MAX_PIECE = 4_000_000;

/** @param {unknown} value @param {number} [most] @returns {value is string} */
const isText = (value, most = 100) => typeof value === "string" && value !== "" && value.length <= most;
/** @param {unknown} value */
const isEpoch = (value) => Number.isSafeInteger(value) && /** @type {number} */ (value) > 0;
/** @param {any} value */
const isAsked = (value) => isText(value.id) && isText(value.from);
/** @param {any} value */
const isAnswer = (value) => isText(value.id) && isEpoch(value.epoch);
/** @param {unknown} value */
const isHeaders = (value) => typeof value === "object" && value !== null && Object.entries(value).every(([name, text]) => isText(name) && isText(text, 1000));

/** What each message must have. @type {Record<Message["type"], (value: any, messageBytes: number) => boolean>} */
const FORMS = {
  request: (value, messageBytes) => isAsked(value) && (value.method === "GET" || value.method === "POST") && isText(value.path, 500)
    && (value.body === undefined || (typeof value.body === "string" && value.body.length <= messageBytes)),
  more: isAsked, cancel: isAsked,
  ping: (value) => isText(value.from),
  owner: (value) => isEpoch(value.epoch), soon: (value) => isEpoch(value.epoch), bye: (value) => isEpoch(value.epoch),
  head: (value) => isAnswer(value) && Number.isInteger(value.status) && value.status >= 200 && value.status <= 599 && isHeaders(value.headers) && (value.body === undefined || typeof value.body === "string"),
  piece: (value) => isAnswer(value) && value.bytes instanceof Uint8Array && value.bytes.length <= MAX_PIECE,
  end: isAnswer,
};

/** Why a message is none, or nothing. @param {MessageEvent} event @param {number} messageBytes @returns {string | undefined} */
export function flawOf({ data, origin }, messageBytes) {
  const own = globalThis.location?.origin;
  if (origin && own && origin !== own) return `it came from ${origin.slice(0, 200)}`;
  if (typeof data !== "object" || data === null || data.v !== 1) return "it is of another version, or of something else";
  const form = typeof data.type === "string" && Object.hasOwn(FORMS, data.type) ? FORMS[/** @type {Message["type"]} */ (data.type)] : undefined;
  if (!form) return "its type is not known";
  return form(data, messageBytes) ? undefined : `its members are not those of \`${data.type}\`, or too long`;
}
