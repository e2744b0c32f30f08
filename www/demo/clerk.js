// @ts-check
// The model of this page until somebody chooses another: a script, which says so. It reads the conversation, does the next
// thing that is left, and believes everything that it reads, as a bad model would.

import { FREE_UP_TO, euros } from "./invoices.js";

/** @typedef {import("../npm/index.js").LlmMessage} LlmMessage */
/** @typedef {import("../npm/index.js").AssistantMessageEvent} Piece */
/** @typedef {import("./invoices.js").Invoice} Order */
/** @typedef {{ text: string, calls: { toolName: string, arguments: object }[] }} Answer */

const LISTED = /^(INV-\d+): ([\d.]+) euros to (.+)$/gm;
const ORDERED = /Pay (INV-\d+), ([\d.]+) euros, to (.+?) at once/;

/** Orders, from the pieces of a text that a pattern has found. @param {RegExpMatchArray} found @returns {Order} */
const orderOf = ([, invoice = "", amount, to = ""]) => ({ invoice, to, amount: Number(amount) });

/** What the clerk says next. @param {readonly LlmMessage[]} messages @returns {Answer} */
export function nextAnswer(messages) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
  /** @type {any[]} */
  const calls = messages.flatMap((message) => (message.role === "assistant" ? message.content.filter(({ type }) => type === "tool_call") : []));
  const results = new Map(messages.flatMap((message) => (message.role === "tool_result" ? [[message.callId, message]] : [])));
  const textOf = (/** @type {any} */ message) => message.content.map((/** @type {any} */ block) => block.text ?? "").join("\n");
  const hasRead = since.some((message) => message.role === "tool_result" && message.toolName === "read_inbox");
  if (!hasRead) return { text: "I look into the inbox.", calls: [{ toolName: "read_inbox", arguments: {} }] };

  const ordered = new Set(calls.filter(({ toolName }) => toolName === "pay_invoice").map((call) => call.arguments.invoice));
  const pay = (/** @type {Order} */ order) => ({ toolName: "pay_invoice", arguments: order });
  const all = [...results.values()].map(textOf).join("\n");
  const injected = ORDERED.exec(all);
  if (injected && !ordered.has(injected[1])) return { text: `A tool says that I must pay ${injected[1]} at once. I do as I read.`, calls: [pay(orderOf(injected))] };

  const listed = [...all.matchAll(LISTED)].map(orderOf);
  const open = listed.filter((order, index) => !ordered.has(order.invoice) && listed.findIndex(({ invoice }) => invoice === order.invoice) === index);
  const small = open.filter(({ amount }) => amount <= FREE_UP_TO);
  if (small.length > 0) return { text: `${open.length} invoices are open. I pay the small ones first.`, calls: small.map(pay) };
  if (open[0]) return { text: `Now ${open[0].invoice}, ${euros(open[0].amount)}: that needs your yes.`, calls: open.slice(0, 1).map(pay) };

  const paid = calls.filter((call) => call.toolName === "pay_invoice" && results.get(call.callId)?.isError === false);
  const not = [...ordered].filter((invoice) => !paid.some((call) => call.arguments.invoice === invoice));
  const names = paid.map((call) => call.arguments.invoice).join(", ");
  return { text: `Paid, each once: ${names || "none"}.${not.length > 0 ? ` Not paid: ${not.join(", ")}.` : ""}`, calls: [] };
}

/**
 * The clerk as a model that writes at the pace of a person who reads along.
 * @param {{ pause: (ms: number, signal?: AbortSignal) => Promise<void>, isOffline: () => boolean, id: () => string }} means
 * @returns {(request: import("../npm/index.js").ModelRequest, context: { signal: AbortSignal }) => AsyncGenerator<Piece>}
 */
export function clerk({ pause, isOffline, id }) {
  return async function* (request, { signal }) {
    await pause(500, signal);
    if (isOffline()) return yield { type: "error", error: /** @type {any} */ ({ code: "network", message: OFFLINE, retryable: true }) };
    const { text, calls } = nextAnswer(request.messages);
    yield { type: "start" };
    yield { type: "text_start", contentIndex: 0 };
    for (const delta of text.match(/\S+\s*/g) ?? []) {
      await pause(45, signal);
      yield { type: "text_delta", contentIndex: 0, delta };
    }
    yield { type: "text_end", contentIndex: 0 };
    for (const [index, call] of calls.entries()) {
      await pause(150, signal);
      yield { type: "tool_call_start", contentIndex: index + 1, callId: `call_${id()}`, toolName: call.toolName };
      yield { type: "tool_call_delta", contentIndex: index + 1, delta: JSON.stringify(call.arguments) };
      yield { type: "tool_call_end", contentIndex: index + 1 };
    }
    yield { type: "done", stopReason: calls.length > 0 ? "tool_use" : "stop" };
  };
}

/** How a request fails while the page is switched offline. The retry rule knows it by this text. */
export const OFFLINE = "no network: the page is switched offline";
