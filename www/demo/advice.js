// @ts-check
// Explains an error, with what to do about it.

/** @typedef {import("../npm/index.js").ErrorInfo} ErrorInfo */

/**
 * @typedef {object} Where
 * @property {string} label who was asked, for example `Ollama`
 * @property {string} [baseUrl]
 * @property {string} [model]
 * @property {string} [start] how to start that server
 * @property {string} [allow] how to make it accept this page
 * @property {string} origin the page's origin
 */

/**
 * Explains what went wrong and what to do about it.
 *
 * @param {ErrorInfo} error
 * @param {Where} where
 * @returns {{ title: string, advice: string[] }}
 */
export function explain(error, where) {
  const { label, baseUrl = "the model" } = where;
  const status = error.provider?.status;
  // A page in place of an answer is treated like a 404: nothing there knows of models.
  if (status === 404 || /is the address that of the API\?$/.test(error.message)) {
    const known = where.model && status === 404 ? [`Is \`${where.model}\` the exact model id there?`] : [];
    return { title: `${label} does not know the ${known.length > 0 ? "model or the " : ""}address.`, advice: [...known, `The address usually ends in \`/v1\`; it is \`${baseUrl}\`.`] };
  }
  switch (error.code) {
    case "auth":
      return { title: `${label} refused the key${status ? ` (${status})` : ""}.`, advice: ["Open the model settings and type a valid key. It is sent to that address only."] };
    case "network":
      if (/ was cut: |^the stream ended early/.test(error.message)) return { title: `${label} began to answer, and was cut off.`, advice: ["Try again in a moment. If it stays, look at the server's log."] };
      return { title: `No answer from ${baseUrl}.`, advice: networkAdvice(where) };
    case "timeout":
      return { title: `${label} did not answer in time.`, advice: ["Is the machine busy loading the model? Try again in a moment."] };
    case "throttled":
      return { title: `${label} asks for patience (too many requests).`, advice: [error.retryAfterMs ? `Try again in ${Math.ceil(error.retryAfterMs / 1000)} seconds.` : "Try again in a minute, or check the quota of the key."] };
    case "overloaded":
    case "server":
      return { title: `${label} has a problem of its own${status ? ` (${status})` : ""}.`, advice: ["Try again in a moment. If it stays, look at the server's log."] };
    case "invalid_request":
      return { title: `${label} refused the request${status ? ` (${status})` : ""}.`, advice: ["Can the model call tools? Many small ones cannot.", `The server says: ${error.message}`] };
    case "context_overflow":
      return { title: "The conversation is longer than the model can read.", advice: ["Start over, or choose a model with a larger context."] };
    case "content_filtered":
      return { title: `${label} held the answer back.`, advice: ["Choose another model."] };
    case "aborted":
      return { title: "The run was stopped.", advice: [] };
    default:
      return { title: "Something went wrong.", advice: [error.message] };
  }
}

/** @param {Where} where */
function networkAdvice({ label, baseUrl = "", start, allow, origin }) {
  const advice = [];
  if (start) advice.push(`Is ${label} running? Start it with \`${start}\`.`);
  else advice.push("Is the address right, and is there a server?");
  if (origin.startsWith("https:") && baseUrl.startsWith("http:") && !/^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])/.test(baseUrl)) {
    advice.push("This page came over https, so the browser does not let it call an address that begins with http.");
  }
  advice.push(`If it runs, it may not allow this page (CORS): the browser tells a page no more than “failed”. The server must allow the origin \`${origin}\`${allow ? `: ${allow}` : "."}`);
  return advice;
}
