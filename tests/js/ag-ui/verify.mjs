// @ts-check
// Both versions of the AG-UI client as judges: the events of a stream must have the form and the order that each accepts.

import { verifyEvents } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import * as old from "ag-ui-client-0.0.59";
import { createRequire } from "node:module";
import { from, lastValueFrom, toArray } from "rxjs";
import { toAGUI } from "../../../pkg/ag-ui.js";

const require = createRequire(createRequire(import.meta.url).resolve("ag-ui-client-0.0.59"));

/** @type {[string, any, any][]} */
export const CLIENTS = [
  ["1.0.0", verifyEvents, EventSchemas],
  ["0.0.59", old.verifyEvents, require("@ag-ui/core").EventSchemas],
];

/**
 * What a client refuses of a stream of events: an empty text if nothing.
 * @param {any[]} events @param {any} verify @param {any} schemas
 */
export async function refusal(events, verify, schemas) {
  const [first, last] = [events[0], events.at(-1)];
  if (first?.type !== "RUN_STARTED" || !["RUN_FINISHED", "RUN_ERROR"].includes(last.type)) return `a stream from ${first?.type} to ${last?.type}`;
  for (const event of events) {
    const { success, error } = schemas.safeParse(event);
    if (!success) return `${JSON.stringify(event)}: ${error.message}`;
  }
  try {
    await lastValueFrom(from(events).pipe(verify(false), toArray()));
    return "";
  } catch (/** @type {any} */ error) {
    return error.message;
  }
}

/** Reads runs through turnwheel/ag-ui, and counts what the clients accept. */
export class Verification {
  /** The runs of a scenario: their events, and the promise of the last of them. @type {{ events: any[], read: Promise<void>, isOver: boolean }[]} */
  #streams = [];
  #accepted = new Map(CLIENTS.map(([version]) => [version, 0]));
  #traces = 0;
  #runs = 0;
  hasFailed = false;

  /** @param {any} run */
  read(run) {
    /** @type {any[]} */
    const events = [];
    const stream = { events, read: readAll(run, events), isOver: false };
    run.result.then(() => (stream.isOver = true));
    this.#streams.push(stream);
  }

  /** @param {string} name of the scenario whose runs were read */
  async judge(name) {
    await new Promise((resolve) => setImmediate(resolve));
    // A run that hangs for ever has no end to judge.
    const streams = this.#streams.splice(0).filter(({ isOver }) => isOver);
    this.#traces++;
    this.#runs += streams.length;
    for (const { read } of streams) await read;
    for (const [version, verify, schemas] of CLIENTS) {
      const complaints = (await Promise.all(streams.map(({ events }) => refusal(events, verify, schemas)))).filter(Boolean);
      if (complaints.length === 0) this.#accepted.set(version, (this.#accepted.get(version) ?? 0) + 1);
      else this.hasFailed = true;
      for (const complaint of complaints) console.log(`${name}: @ag-ui/client ${version} refuses ${complaint}`);
    }
  }

  summary() {
    return [...this.#accepted].map(([version, count]) => `@ag-ui/client ${version} accepts ${count} of ${this.#traces} traces (${this.#runs} runs)`).join("\n");
  }
}

/** Reads all responses of a run: one that waited for the client has another. @param {any} run @param {any[]} events */
async function readAll(run, events) {
  let isOver = false;
  run.result.then(() => (isOver = true));
  while (!isOver) {
    for await (const event of toAGUI(run, { threadId: "thread", state: {} })) events.push(event);
    // Whoever is asked may need a moment.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
