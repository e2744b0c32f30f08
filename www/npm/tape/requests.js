// @ts-check
// Requests to models, compared.

/** What counts of a request: times, ids of runs, keys and headers differ from run to run. @param {any} request */
export function shown(request) {
  const { model, systemPrompt, messages, tools, options, output } = request;
  const { headers, body, ...known } = options ?? {};
  return stable({ model, systemPrompt, messages: messages.map(withoutTime), tools, options: known, output });
}

/** @param {any} message */
function withoutTime({ timestamp, usage, id, ...message }) {
  return message;
}

/** JSON with sorted keys. @param {any} value @returns {string} */
export function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stable(value[key])}`).join(",")}}`;
}

const MEMBERS = ["model", "systemPrompt", "tools", "options", "output"];
/** How much of what differs is shown. */
const SHOWN = 200;

/** Names the first place in which two requests differ. @param {any} taped @param {any} asked */
export function differenceOf(taped, asked) {
  for (const key of MEMBERS) {
    const [is, was] = [stable(asked[key]), stable(taped[key])];
    if (is !== was) return `\`${key}\` is ${around(is, was)}, on the tape it is ${around(was, is)}`;
  }
  const at = sameMessages(taped, asked);
  if (at === asked.messages.length) return `it has ${at} messages, on the tape there are ${taped.messages.length}`;
  const [is, was] = [asked.messages[at], taped.messages[at] ?? {}].map((message) => stable(withoutTime(message)));
  return `message ${at} is ${around(is, was)}, on the tape it is ${around(was, is)}`;
}

/** Of some requests the one that is most like another: in its messages, then in the rest. @param {any[]} taped @param {any} asked */
export function nearest(taped, asked) {
  const likeness = (/** @type {any} */ request) => sameMessages(request, asked) * (MEMBERS.length + 1) + MEMBERS.filter((key) => stable(request[key]) === stable(asked[key])).length;
  return taped.reduce((best, request) => (likeness(request) > likeness(best) ? request : best));
}

/** How many messages are the same at the beginning. @param {any} taped @param {any} asked @returns {number} */
function sameMessages(taped, asked) {
  const at = asked.messages.findIndex((/** @type {any} */ message, /** @type {number} */ i) => stable(withoutTime(message)) !== stable(withoutTime(taped.messages[i] ?? {})));
  return at === -1 ? asked.messages.length : at;
}

/** The beginning of a text, or where it begins to differ from another, if that is later. @param {string} text @param {string} other */
function around(text, other) {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  const from = at < SHOWN / 2 ? 0 : at - SHOWN / 4;
  return `${from > 0 ? "…" : ""}${text.slice(from, from + SHOWN)}`;
}
