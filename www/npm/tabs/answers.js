// @ts-check
// The owner's half: answers the requests of other tabs. What they may do is what a client elsewhere may do, and no more may
// wait here than the limits say.

/** @import { Channels } from "./channel.js" */
/** @import { Asked, Message } from "./messages.js" */
/** Answers what a tab asks, the owner's own too. @typedef {(asked: Pick<Asked, "method" | "path" | "body"> & { signal?: AbortSignal | null | undefined }) => Promise<Response>} Answerer */
/** An answer that is being given. @typedef {{ stop: AbortController, reader?: ReadableStreamDefaultReader<Uint8Array>, isReading: boolean }} Answer */

export class Answers {
  /** @param {Channels} channels @param {Answerer} handler @param {number} epoch @param {number} waiting how many commands may wait */
  constructor(channels, handler, epoch, waiting) {
    this.channels = channels;
    this.handler = handler;
    this.epoch = epoch;
    this.most = waiting;
    this.waiting = 0;
    /** @type {Map<string, Answer>} */
    this.open = new Map();
    this.isOver = false;
  }

  /** @param {Message} message */
  take(message) {
    if (this.isOver) return;
    if (message.type === "ping") this.channels.post({ v: 1, type: "owner", epoch: this.epoch });
    else if (message.type === "request") void this.#answer(message);
    else if (message.type === "more") void this.#more(`${message.from} ${message.id}`, message);
    else if (message.type === "cancel") this.#stop(`${message.from} ${message.id}`);
  }

  close() {
    this.isOver = true;
    for (const key of [...this.open.keys()]) this.#stop(key);
  }

  /** @param {Asked} asked */
  async #answer(asked) {
    const { id, from } = asked;
    const key = `${from} ${id}`;
    // It was asked again, in case nobody had heard it.
    if (this.open.has(key)) return;
    if (this.waiting >= this.most) return this.#head(asked, new Response(JSON.stringify({ error: { code: "throttled", message: `${this.most} commands of tabs wait already; see the option \`limits.waiting\`` } }), { status: 429, headers: { "retry-after": "1", "content-type": "application/json" } }));
    this.waiting += 1;
    const answer = { stop: new AbortController(), isReading: false };
    this.open.set(key, answer);
    try {
      await this.#head(asked, await this.handler({ ...asked, signal: answer.stop.signal }), answer);
    } catch (error) {
      this.open.delete(key);
      if (!this.isOver) console.error("turnwheel/tabs: a request could not be answered", error);
    } finally {
      this.waiting -= 1;
    }
  }

  /** A stream is sent as it is asked for, anything else at once. @param {Asked} asked @param {Response} response @param {Answer} [answer] */
  async #head({ id, from }, response, answer) {
    const { status, headers, body } = response;
    const isStream = answer !== undefined && body !== null && headers.get("content-type") === "text/event-stream";
    if (isStream) answer.reader = body.getReader();
    const text = isStream ? undefined : await response.text();
    if (this.isOver) return;
    if (!isStream) this.open.delete(`${from} ${id}`);
    this.channels.answer(from, { v: 1, type: "head", id, epoch: this.epoch, status, headers: Object.fromEntries(headers), ...(text !== undefined && { body: text }) });
  }

  /** @param {string} key @param {{ id: string, from: string }} asked */
  async #more(key, { id, from }) {
    const answer = this.open.get(key);
    if (!answer?.reader || answer.isReading) return;
    answer.isReading = true;
    const { done, value } = await answer.reader.read().catch(() => ({ done: true, value: undefined }));
    answer.isReading = false;
    if (this.isOver || !this.open.has(key)) return;
    if (!done && value) return this.channels.answer(from, { v: 1, type: "piece", id, epoch: this.epoch, bytes: /** @type {Uint8Array<ArrayBuffer>} */ (value) });
    this.open.delete(key);
    this.channels.answer(from, { v: 1, type: "end", id, epoch: this.epoch });
  }

  /** @param {string} key */
  #stop(key) {
    const answer = this.open.get(key);
    this.open.delete(key);
    answer?.stop.abort();
    answer?.reader?.cancel().catch(() => {});
  }
}

/** The request as the owner gets it: from this machine, for that is where it comes from. @param {Parameters<Answerer>[0]} asked */
export function requestOf({ method, path, body, signal }) {
  return new Request(`http://localhost/${path}`, { method, ...(method === "POST" && { body: body ?? "", headers: { "content-type": "application/json" } }), ...(signal && { signal }) });
}
