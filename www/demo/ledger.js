// @ts-check
// The ledger: each invoice, and how often the bank has paid it. It is drawn from the bank's books, not from what the agent says.

import { h } from "./dom.js";
import { INVOICES, euros } from "./invoices.js";

/** @typedef {import("./invoices.js").Payment} Payment */
/** @typedef {import("./invoices.js").Invoice} Invoice */
/** What the agent does with an invoice at the moment. @typedef {"ordered" | "asked" | "refused" | "rejected"} OrderState */

/** @type {Record<OrderState, string>} */
const WORDS = { ordered: "order on its way", asked: "waits for your yes", refused: "refused by a rule", rejected: "you said no" };

/**
 * @param {{ rows: HTMLElement, total: HTMLElement }} parts
 * @param {{ payments: readonly Payment[], requests: readonly { key: string, invoice: string }[], states: ReadonlyMap<string, OrderState> }} books
 */
export function drawLedger({ rows, total }, { payments, requests, states }) {
  /** @type {Invoice[]} */
  const others = payments.filter(({ invoice }) => !INVOICES.some((known) => known.invoice === invoice));
  rows.replaceChildren(...[...INVOICES, ...others].map((invoice) => row(invoice, payments.filter((payment) => payment.invoice === invoice.invoice), requests, states)));
  const once = INVOICES.filter(({ invoice }) => payments.filter((payment) => payment.invoice === invoice).length === 1).length;
  const wrong = payments.length - once;
  const text = wrong > 0 ? `Wrong: ${wrong} payments too many.` : once === 0 ? "Nothing is paid yet." : `${once} of ${INVOICES.length} paid, each once.`;
  // Said again by screen readers only when it has changed.
  if (total.textContent !== text) total.textContent = text;
  total.dataset["state"] = wrong > 0 ? "wrong" : once === INVOICES.length ? "all" : "some";
}

/** @param {Invoice} invoice @param {Payment[]} paid @param {readonly { key: string, invoice: string }[]} requests @param {ReadonlyMap<string, OrderState>} states */
function row({ invoice, to, amount }, paid, requests, states) {
  const isKnown = INVOICES.some((known) => known.invoice === invoice);
  const asked = requests.filter((request) => request.invoice === invoice).length;
  const state = states.get(invoice);
  const isRight = isKnown && paid.length === 1;
  const word = isRight ? "paid once" : paid.length > 0 ? `paid ${paid.length} times` : state ? WORDS[state] : "open";
  const facts = paid[0] && `${asked} request${asked === 1 ? "" : "s"}, ${paid.length} payment${paid.length === 1 ? "" : "s"}`;
  return h("tr", { testid: "ledger-row", "data-invoice": invoice, "data-payments": paid.length, "data-state": isRight ? "paid" : paid.length > 0 ? "wrong" : state ?? "open" },
    h("th", { scope: "row" }, invoice, h("small", {}, to)),
    h("td", { class: "amount" }, euros(amount)),
    h("td", {}, h("span", { class: "word" }, word), facts && h("small", { title: `Idempotency key ${paid[0]?.key}` }, facts)));
}
