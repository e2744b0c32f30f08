// @ts-check
// Requests to models, compared.

/** What counts of a request: times, ids of runs, keys and headers differ from run to run. @param {any} request */
export function shown(request) {
  const { model, systemPrompt, messages, tools, options, output } = request;
  const { headers, body, ...known } = options ?? {};
  return stable({ model, systemPrompt, messages: messages.map(withoutTime), tools, options: known, output });
}

/** @param {any} message */
function withoutTime({ timestamp, usage, ...message }) {
  return message;
}

/** JSON with sorted keys. @param {any} value @returns {string} */
export function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stable(value[key])}`).join(",")}}`;
}

/** Names the first place in which two requests differ. @param {any} taped @param {any} asked */
export function differenceOf(taped, asked) {
  for (const key of ["model", "systemPrompt", "tools", "options", "output"]) {
    if (stable(taped[key]) !== stable(asked[key])) return `\`${key}\` is ${stable(asked[key]).slice(0, 200)}, on the tape it is ${stable(taped[key]).slice(0, 200)}`;
  }
  const at = asked.messages.findIndex((/** @type {any} */ message, /** @type {number} */ i) => stable(withoutTime(message)) !== stable(withoutTime(taped.messages[i] ?? {})));
  if (at === -1) return `it has ${asked.messages.length} messages, on the tape there are ${taped.messages.length}`;
  return `message ${at} is ${stable(withoutTime(asked.messages[at])).slice(0, 200)}, on the tape it is ${stable(withoutTime(taped.messages[at] ?? {})).slice(0, 200)}`;
}
