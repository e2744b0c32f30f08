// @ts-check
// The events of a run, for a chat that reads them as UI messages: in parts, for it can answer only what has ended, and again, when
// it comes back.

import { UIMessages } from "../response/uimessages.js";
import { chunksOf, toUIMessages } from "./ui-messages.js";

/** @import { AgentEvent, Receipt } from "../index.js" */
/** @import { ChatTransportOptions } from "../ai-sdk.js" */
/** @import { Chunk } from "../response/uimessages.js" */
/** A message of the chat: which events are in it, and how far a stream has told of it. @typedef {{ id: string | null, from: number, to: number, told: number }} Answer */
/** @typedef {ReadableStreamDefaultController<Chunk>} Controller */

export class Recording {
  /**
   * @param {any} agent @param {{ readonly runId: string, abort(reason?: unknown): void }} run @param {ChatTransportOptions} options
   * @param {string | null} id @param {AgentEvent[]} [events] that were heard of it before
   */
  constructor(agent, run, { messageMetadata, onError, toolOutput }, id, events = []) {
    this.run = run;
    // Of an agent elsewhere the server shows no others.
    const isForPeople = (/** @type {string} */ id) => /** @type {any} */ (run).isForPeople?.(id) ?? true;
    this.options = { messageMetadata, onError, toolOutput, isForPeople };
    /** The answer that the run goes on with, as it stood in the checkpoint: a chat that comes back is shown all of it. */
    this.earlier = id === null ? toUIMessages(agent.messages, { ...(toolOutput && { toolOutput }) }).at(-1) : undefined;
    this.events = events;
    this.isOver = false;
    this.isStopped = false;
    /** The messages of the chat, the newest last. @type {Answer[]} */
    this.answers = [{ id, from: 0, to: Infinity, told: 0 }];
    /** How many messages of the user wait to be read. */
    this.waiting = 0;
    /** How often a chat has come back to it. */
    this.returns = 0;
    /** Wakes the streams. */
    this.news = signal();
    const leave = agent.subscribe((/** @type {AgentEvent} */ event) => {
      if (event.runId !== run.runId) return;
      this.events.push(event);
      if (event.type === "agent_end") {
        this.isOver = true;
        leave();
      }
      this.#wake();
    });
  }

  #wake() {
    this.news.resolve();
    this.news = signal();
  }

  /** @param {AbortSignal | undefined} aborted @param {boolean} isReplay */
  #stopWith(aborted, isReplay) {
    const { returns } = this;
    const stop = async () => {
      // A chat that connects once more gives up the connection before. Otherwise the person has pressed stop.
      if (isReplay) await new Promise((wake) => setTimeout(wake));
      if (this.isOver || (isReplay && this.returns > returns)) return;
      this.isStopped = true;
      this.run.abort("the chat was stopped");
    };
    if (aborted?.aborted) void stop();
    else aborted?.addEventListener("abort", () => void stop(), { once: true });
  }

  /**
   * What comes from here on of the newest message; with `isReplay` all of it. `answered`: the questions that were just answered, so
   * that nobody is waited for because of them.
   * @param {{ signal?: AbortSignal | undefined, isReplay?: boolean, answered?: string[] }} how @returns {ReadableStream<Chunk>}
   */
  stream({ signal, isReplay = false, answered = [] }) {
    if (isReplay) this.returns++;
    this.#stopWith(signal, isReplay);
    const unheard = new Set(answered);
    for (const event of this.events) if (isClosed(event)) unheard.delete(event.id);
    return this.#read(() => this.#tell(/** @type {Answer} */ (this.answers.at(-1)), isReplay, unheard));
  }

  /**
   * What comes after a message of the user was read, as a message of its own.
   * @param {Receipt} receipt @param {{ signal: AbortSignal | undefined, orElse(): Promise<ReadableStream<Chunk>> }} how @returns {ReadableStream<Chunk>}
   */
  after(receipt, { signal, orElse }) {
    this.#stopWith(signal, false);
    this.waiting++;
    const read = receipt.then((answer) => {
      this.waiting--;
      // The events of a turn that has begun may have been told before.
      const at = answer.delivered ? this.events.findIndex((event) => event.type === "turn_start" && event.turnIndex === answer.turnIndex) : -1;
      const isNew = answer.delivered && at >= 0 && this.answers.at(-1)?.from !== at;
      if (isNew) {
        /** @type {Answer} */ (this.answers.at(-1)).to = at;
        this.answers.push({ id: `${this.run.runId}/${answer.turnIndex}`, from: at, to: Infinity, told: at });
      }
      this.#wake();
      return { ...answer, isNew };
    });
    return this.#read(() => this.#tellAfter(read, async () => (signal?.aborted || this.isStopped ? undefined : orElse())));
  }

  /** @param {Promise<{ delivered: boolean, isNew: boolean }>} read @param {() => Promise<any>} orElse @returns {AsyncGenerator<Chunk>} */
  async *#tellAfter(read, orElse) {
    const { delivered, isNew } = await read;
    if (!delivered) for await (const chunk of (await orElse()) ?? []) yield chunk;
    // Two messages that are read together have one answer.
    else if (isNew) yield* this.#tell(/** @type {Answer} */ (this.answers.at(-1)), false);
  }

  /** @param {() => AsyncGenerator<Chunk>} tell @returns {ReadableStream<Chunk>} */
  #read(tell) {
    const chunks = tell();
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    }, { highWaterMark: 0 });
  }

  /** @param {Answer} answer @param {boolean} isReplay @param {Set<string>} [unheard] answers that no event has told of @returns {AsyncGenerator<Chunk>} */
  async *#tell(answer, isReplay, unheard = new Set()) {
    const earlier = isReplay && answer.id === null && this.earlier?.role === "assistant" ? this.earlier : undefined;
    if (isReplay && answer.id === null && !earlier) {
      while (this.events.length === 0) await this.news.promise;
      answer.id = `${this.run.runId}/${/** @type {{ turnIndex?: number }} */ (this.events[0]).turnIndex ?? 0}`;
    }
    const ui = new UIMessages({ ...this.options, messageId: answer.id ?? earlier?.id });
    let at = isReplay ? answer.from : answer.told;
    for (const event of this.events.slice(0, at)) ui.replay(event);
    yield* copies(ui.begin(this.run.runId));
    if (earlier) {
      yield* copies(chunksOf(earlier.parts));
      ui.inStep = true;
    }
    for (;;) {
      if (at >= answer.to) return yield* copies(ui.pause("stop"));
      const event = this.events[at];
      if (event?.type === "turn_start" && this.waiting > 0 && at > answer.from) {
        // The turn may be that of the next message.
        await settled();
        if (at >= answer.to) continue;
      }
      if (event) {
        at++;
        if (isClosed(event)) unheard.delete(event.id);
        answer.told = Math.max(answer.told, at);
        yield* copies(ui.take(event));
        if (ui.isOver) return;
        continue;
      }
      if (ui.isWaiting && unheard.size === 0) {
        // Gives a listener the chance to decide right away: then no person needs to be asked.
        await settled();
        if (at >= this.events.length && this.waiting === 0) return yield* copies(ui.pause());
      }
      if (at >= this.events.length && at < answer.to) await this.news.promise;
    }
  }
}

/** @param {AgentEvent} event @returns {event is Extract<AgentEvent, { type: "tool_approval_resolved" | "question_resolved" }>} */
const isClosed = (event) => event.type === "tool_approval_resolved" || event.type === "question_resolved";

/** Chats change what they are given. @param {Chunk[]} chunks @returns {Chunk[]} */
const copies = (chunks) => JSON.parse(JSON.stringify(chunks));

/** Lets everything happen that needs no time. */
async function settled() {
  for (let i = 0; i < 8; i++) await undefined;
}

/** @returns {{ promise: Promise<void>, resolve(): void }} */
function signal() {
  let resolve = () => {};
  const promise = new Promise((/** @type {(value: void) => void} */ done) => (resolve = done));
  return { promise, resolve };
}
