// @ts-check
// The network of the docs: providers that answer as a page says, on each of the four wires.
// It lasts for one program.

/**
 * A request: the address, the headers by name, the body.
 * @typedef {{ url: string, headers: Record<string, string>, body: any }} Asked
 */

/**
 * From now on `fetch` gives these answers in order: texts, or Responses as they are.
 * @param {(string | Response)[]} answers
 */
export function answering(...answers) {
  /** @type {Asked[]} */
  const requests = [];
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    requests.push({ url: request.url, headers: Object.fromEntries(request.headers), body: await request.json() });
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("this page has no more answers");
    return typeof answer === "string" ? stream(framesOf(new URL(request.url).pathname, answer)) : answer;
  };
  return requests;
}

/** @param {any[]} frames */
const stream = (frames) => new Response(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } });

/**
 * A whole answer, with 1,000 tokens in and 10 out.
 * @param {string} path @param {string} text @returns {any[]}
 */
function framesOf(path, text) {
  if (path.endsWith("/responses")) {
    return [
      { type: "response.output_text.delta", output_index: 0, delta: text },
      { type: "response.completed", response: { status: "completed", usage: { input_tokens: 1000, output_tokens: 10 } } },
    ];
  }
  if (path.endsWith("/messages")) {
    return [
      { type: "message_start", message: { id: "m", usage: { input_tokens: 1000, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } },
      { type: "message_stop" },
    ];
  }
  if (path.includes(":streamGenerateContent")) {
    return [{ candidates: [{ content: { parts: [{ text }] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 10 } }];
  }
  return [{ choices: [{ index: 0, delta: { content: text }, finish_reason: "stop" }], usage: { prompt_tokens: 1000, completion_tokens: 10 } }];
}

/** The text of the last message in a request. @param {{ messages: any[] }} request @returns {string} */
export const lastText = (request) => textOf(request.messages.at(-1));

/** @param {any} message @returns {string} */
export const textOf = (message) => message.content.map((/** @type {any} */ block) => block.text ?? "").join("");
