// @ts-check
// A page that lives through schedules of lives, for tests/js/browser. A life ends with a reload of the page,
// inside the listener of an event, once the checkpoint is in IndexedDB; everything else that the page
// remembers is in sessionStorage.

import { indexedDBStore } from "../../../pkg/stores.js";
import { runLife, plain } from "./lives.mjs";
import { world } from "./world.mjs";

const store = indexedDBStore({ name: "lives" });
let isOver = false;
/** @type {string | undefined} */
let failure;
const remembered = () => JSON.parse(sessionStorage.getItem("schedule") ?? "null");
const remember = (/** @type {any} */ schedule) => sessionStorage.setItem("schedule", JSON.stringify(schedule));

/** The next life of a schedule. */
async function nextLife() {
  const schedule = remembered();
  let { dice } = schedule;
  const roll = (/** @type {number} */ n) => (dice = (dice * 1_103_515_245 + 12_345) % 2_147_483_648) % n;
  const from = await store.load("run");
  const own = { ...world(() => roll(6)), failed: schedule.failed };
  own.ran = schedule.ran;
  const isLast = schedule.lives++ >= schedule.most;
  const agent = await runLife(own, {
    ...(from && { from }), until: isLast ? Infinity : 1 + roll(40),
    onEvent(event, agent) {
      schedule.events.push(event);
      // As an app would: at every event, without waiting for it.
      void store.save("run", agent.checkpoint());
    },
    async die(checkpoint) {
      remember({ ...schedule, dice, failed: own.failed });
      await store.save("run", checkpoint);
      location.reload();
    },
  });
  remember({ ...schedule, history: plain(agent.messages) });
  isOver = true;
}

/** Begins a schedule with a fresh page. @param {number} seed @param {number} most so many lives before the last one */
async function begin(seed, most) {
  isOver = false;
  await store.delete("run");
  remember({ dice: (seed * 2_654_435_761) % 2_147_483_648, most, lives: 0, failed: false, ran: [], events: [] });
  location.reload();
}

/** Reports what went wrong in a schedule of lives, or how it ended. Polled in every frame. */
function report() {
  if (failure) return { failure };
  if (!isOver) return;
  const { ran, events, history } = remembered();
  return { ran, events, history };
}

/** Errors of the store, each as its message says it. */
async function errors() {
  const of = (/** @type {() => any} */ work) => (async () => work())().then(() => "no error", (error) => error.message);
  const broken = indexedDBStore({ name: "lives" });
  const checkpoint = /** @type {any} */ ({ messages: [] });
  return {
    id: await of(() => store.save("", checkpoint)),
    none: await of(() => store.save("a", /** @type {any} */ (undefined))),
    name: await of(() => indexedDBStore({ name: "" })),
    slip: await of(() => indexedDBStore(/** @type {any} */ ({ nme: "lives" }))),
    text: await of(() => indexedDBStore(/** @type {any} */ ("lives"))),
    uncloneable: await of(() => broken.save("a", { ...checkpoint, metadata: { f() {} } })),
  };
}

/** Stresses the store: many saves at once, and a database that is deleted meanwhile. */
async function churn() {
  const own = indexedDBStore({ name: "churn" });
  const { put } = IDBObjectStore.prototype;
  /** @type {number[]} */
  const written = [];
  IDBObjectStore.prototype.put = function (value, key) {
    // The list of the store has an entry of its own for each checkpoint.
    if (value.metadata) written.push(value.metadata.n);
    return put.call(this, value, key);
  };
  const numbered = (/** @type {number} */ n) => /** @type {any} */ ({ version: 1, messages: [], metadata: { n } });
  try {
    /** @type {number[]} */
    const settled = [];
    const saves = Array.from({ length: 100 }, (_, n) => own.save("a", numbered(n)).then(() => void settled.push(n)));
    const loaded = await own.load("a");
    await Promise.all(saves);
    const others = [own.save("a", numbered(200)), own.save("a", numbered(201)), own.delete("a"), own.save("b", numbered(202))];
    await Promise.all(others);
    const gone = await own.load("a");
    await new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase("churn"), { onsuccess: resolve, onerror: reject, onblocked: reject }));
    const after = await own.load("b");
    await own.save("b", numbered(203));
    return { written, settled: settled.length, loaded: loaded?.metadata, gone, after, again: (await own.load("b"))?.metadata };
  } finally {
    IDBObjectStore.prototype.put = put;
  }
}

Object.assign(globalThis, { begin, report, errors, churn });
if (remembered() && !remembered().history) nextLife().catch((error) => (failure = String(error?.stack ?? error)));
document.documentElement.dataset["ready"] = "";
