// @ts-check
// The dialog to choose the model.

import { explain } from "./advice.js";
import { withCode } from "./conversation.js";
import { byId, h } from "./dom.js";
import { FIRST_CHOICE, ROWS, isRemote, listModels, missingIn, rowOf, whereOf } from "./models.js";

/** @typedef {import("./models.js").Choice} Choice */

const STORED = "turnwheel-demo-model";

export class Chooser {
  /** @param {(choice: Choice) => void} onChoice called with every choice that is confirmed */
  constructor(onChoice) {
    this.onChoice = onChoice;
    this.choice = stored() ?? FIRST_CHOICE;
    this.dialog = byId("model-dialog", HTMLDialogElement);
    this.rows = byId("rows", HTMLFieldSetElement);
    this.remote = byId("remote", HTMLElement);
    this.fields = { baseUrl: byId("base-url", HTMLInputElement), model: byId("model-id", HTMLInputElement), apiKey: byId("api-key", HTMLInputElement) };
    this.remember = byId("remember", HTMLInputElement);
    this.found = byId("found", HTMLElement);
    /** The choice whose models were requested last. @type {Choice | undefined} */
    this.requested = undefined;
    this.remember.checked = stored() !== undefined;
    this.rows.append(...ROWS.map((row) => h("label", { class: "row" },
      h("input", { type: "radio", name: "row", value: row.id, testid: `row-${row.id}`, onchange: () => this.#pick(row.id) }),
      h("span", {}, row.label, h("small", {}, row.note)))));
    byId("model-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#confirm();
    });
    byId("model-cancel", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
    byId("find-models", HTMLButtonElement).addEventListener("click", () => void this.#find());
  }

  open() {
    const { row, baseUrl, model, apiKey } = this.choice;
    this.#pick(row);
    if (isRemote(rowOf(row))) {
      this.fields.baseUrl.value = baseUrl;
      this.fields.model.value = model;
    }
    this.fields.apiKey.value = apiKey;
    this.dialog.showModal();
  }

  /** @param {string} id */
  #pick(id) {
    const row = rowOf(id);
    for (const input of this.rows.querySelectorAll("input")) input.checked = input.value === row.id;
    this.remote.hidden = !isRemote(row);
    this.fields.baseUrl.value = row.baseUrl ?? "";
    this.fields.model.value = row.model ?? "";
    // A key belongs to the address it was typed for, so it does not carry over to another row.
    this.fields.apiKey.value = "";
    byId("key-field", HTMLElement).hidden = row.key === "none";
    byId("key-need", HTMLElement).textContent = row.key === "optional" ? "(if it wants one)" : "";
    byId("model-ids", HTMLDataListElement).replaceChildren();
    this.found.replaceChildren();
    this.requested = undefined;
    this.#problems({});
  }

  /** @returns {Choice} */
  #read() {
    const row = this.rows.querySelector("input:checked");
    const { baseUrl, model, apiKey } = this.fields;
    return { row: row instanceof HTMLInputElement ? row.value : FIRST_CHOICE.row, baseUrl: baseUrl.value.trim(), model: model.value.trim(), apiKey: apiKey.value.trim() };
  }

  #confirm() {
    const choice = this.#read();
    const missing = missingIn(choice);
    this.#problems(missing);
    const first = /** @type {(keyof typeof missing)[]} */ (Object.keys(missing))[0];
    if (first) return this.fields[first].focus();
    this.choice = choice;
    store(this.remember.checked && isRemote(rowOf(choice.row)) ? choice : undefined);
    this.dialog.close();
    this.onChoice(choice);
  }

  async #find() {
    const choice = (this.requested = this.#read());
    const missing = missingIn({ ...choice, model: "any" });
    this.#problems(missing);
    if (Object.keys(missing).length > 0) return;
    this.found.replaceChildren("Asking…");
    const answer = await listModels(choice, AbortSignal.timeout(8000));
    // The user has moved on to another row, or asked again.
    if (this.requested !== choice) return;
    if ("error" in answer) {
      const { title, advice } = explain(answer.error, whereOf(choice, location.origin));
      this.found.replaceChildren(h("strong", {}, title), h("ul", {}, ...advice.map((line) => h("li", {}, ...withCode(line)))));
      return;
    }
    byId("model-ids", HTMLDataListElement).replaceChildren(...answer.ids.map((id) => h("option", { value: id })));
    this.found.replaceChildren(answer.ids.length === 0 ? "The address answers, but has no models yet." : `It answers. Models there: ${answer.ids.slice(0, 12).join(", ")}${answer.ids.length > 12 ? ", …" : ""}`);
    if (answer.ids.length > 0 && !answer.ids.includes(choice.model)) this.fields.model.value = answer.ids[0] ?? "";
  }

  /** @param {{ baseUrl?: string, model?: string, apiKey?: string }} missing */
  #problems(missing) {
    for (const [name, id] of /** @type {const} */ ([["baseUrl", "base-url"], ["model", "model-id"], ["apiKey", "api-key"]])) {
      byId(`${id}-problem`, HTMLElement).textContent = missing[name] ?? "";
      this.fields[name].setAttribute("aria-invalid", String(missing[name] !== undefined));
    }
  }
}

/** @returns {Choice | undefined} */
function stored() {
  try {
    const choice = { ...FIRST_CHOICE, ...JSON.parse(localStorage.getItem(STORED) ?? "") };
    const isComplete = Object.values(choice).every((value) => typeof value === "string");
    return isComplete && Object.keys(missingIn(choice)).length === 0 ? choice : undefined;
  } catch {
    return undefined;
  }
}

/** @param {Choice | undefined} choice */
function store(choice) {
  try {
    if (choice) localStorage.setItem(STORED, JSON.stringify(choice));
    else localStorage.removeItem(STORED);
  } catch {
    // A browser that stores nothing asks again next time.
  }
}
