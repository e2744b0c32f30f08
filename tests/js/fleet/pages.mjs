// @ts-check
// The pages of a siege: each listens to an agent through the router, one of them asks, and all must hear the same story, from
// the beginning to the end.

import assert from "node:assert/strict";
import { RemoteAgent } from "../../../pkg/remote.js";
import { checkTrace } from "../grammar.mjs";

/** The agent as several pages see it. */
export class Story {
  /** @param {string} url @param {number} count */
  constructor(url, count) {
    this.url = url;
    this.begun = 0;
    /** How the runs ended. @type {string[]} */
    this.ended = [];
    /** @type {string[]} */
    this.errors = [];
    const options = { url, stallMs: 5_000, reconnects: { maxAttempts: 1_000, initialMs: 50, maxMs: 500 }, onError: (/** @type {any} */ error) => void this.errors.push(String(error?.message)) };
    this.pages = Array.from({ length: count }, () => new RemoteAgent(options));
    /** @type {any[][]} */
    this.heard = this.pages.map(() => []);
    this.pages.forEach((page, i) => page.subscribe((event) => void this.heard[i]?.push(event)));
  }

  /** Asks again and again. @param {() => boolean} isOver */
  async tell(isOver) {
    await Promise.all(this.pages.map((page) => page.ready()));
    while (!isOver()) {
      this.begun += 1;
      try {
        const { stopReason, error } = await /** @type {RemoteAgent} */ (this.pages[0]).prompt(`Go ${this.begun}`);
        this.ended.push(error ? `${stopReason}: ${error.message}` : stopReason);
      } catch (error) {
        this.ended.push(`refused: ${/** @type {any} */ (error).message}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /** Checks what was heard. Returns how many events it was. */
  async check() {
    await Promise.all(this.pages.map((page) => page.ready().then(() => page.waitForIdle())));
    const [events = []] = this.heard;
    for (const [i, list] of this.heard.entries()) assert.deepEqual(list, events, `page ${i} of ${this.url} heard something else than page 0`);
    for (const trace of runsOf(events)) {
      checkTrace(trace.filter(({ type }) => type !== "run_resumed"));
      checkTexts(trace);
    }
    const [first] = this.pages;
    for (const page of this.pages) assert.deepEqual(page.messages, first?.messages);
    const told = await (await fetch(`${this.url}/state`)).json();
    assert.deepEqual(JSON.parse(JSON.stringify(first?.messages)), told.messages);
    return events.length;
  }

  end() {
    for (const page of this.pages) page[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  }
}

/** @param {any[]} events */
function runsOf(events) {
  /** @type {Map<string, any[]>} */
  const runs = new Map();
  for (const event of events) runs.set(event.runId, [...(runs.get(event.runId) ?? []), event]);
  return [...runs.values()];
}

/** The pieces of every answer are the answer. @param {any[]} events of one run */
export function checkTexts(events) {
  let text = "";
  for (const event of events) {
    if (event.type === "message_start" || event.type === "message_reset") text = "";
    if (event.type === "message_update" && event.delta.type === "text") text += event.delta.delta;
    if (event.type !== "message_end" || event.message.role !== "assistant") continue;
    const whole = event.message.content.flatMap((/** @type {any} */ block) => (block.type === "text" ? block.text : [])).join("");
    assert.equal(text, whole, "the pieces of an answer are not the answer");
  }
}
