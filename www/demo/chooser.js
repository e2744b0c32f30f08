// @ts-check
// The dialog to choose the model.

import { explain } from "./advice.js";
import { slowness } from "./device.js";
import { byId, h, withCode } from "./dom.js";
import { FIRST_CHOICE, GROUPS, ROWS, isOnDevice, isRemote, listModels, missingIn, rowOf, whatLeaves, whereOf } from "./providers.js";
import { megabytes } from "./weights.js";

/** @typedef {import("./providers.js").Choice} Choice */

const STORED = "turnwheel-demo-model";

export class Chooser {
  /** @param {{ onChoice: (choice: Choice) => void, onLoad: (choice: Choice, file?: File) => void }} callbacks a choice that can answer at once; one that has to be loaded first */
  constructor({ onChoice, onLoad }) {
    this.onChoice = onChoice;
    this.onLoad = onLoad;
    /** The weights that this site has. @type {import("./site.js").Weights | null} */
    this.weights = null;
    /** Whether the browser has a model of its own. @type {string} */
    this.own = "unavailable";
    this.device = byId("device", HTMLElement);
    this.file = byId("file", HTMLInputElement);
    this.leaves = byId("leaves", HTMLElement);
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
    this.rows.append(...GROUPS.map(([group, name]) => h("div", { class: `group of-${group}`, role: "group", "aria-label": name },
      h("h3", {}, name),
      ...ROWS.filter((row) => row.group === group).map((row) => h("label", { class: "row" },
        h("input", { type: "radio", name: "row", value: row.id, testid: `row-${row.id}`, onchange: () => this.#pick(row.id) }),
        h("span", {}, h("span", { "data-label": row.id }, row.label), h("small", { "data-note": row.id }, row.note)))))));
    for (const field of Object.values(this.fields)) field.addEventListener("input", () => this.#sayWhatLeaves());
    this.file.addEventListener("change", () => {
      this.#problems({});
      this.#sayWhatLeaves();
    });
    this.#describe();
    byId("model-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#confirm();
    });
    byId("model-cancel", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
    byId("find-models", HTMLButtonElement).addEventListener("click", () => void this.#find());
  }

  /** What is known of the models that run in this page. @param {{ own?: string, weights?: import("./site.js").Weights | null }} known */
  know({ own = this.own, weights = this.weights }) {
    Object.assign(this, { own, weights });
    this.#describe();
  }

  #describe() {
    const { own, weights } = this;
    const note = (/** @type {string} */ id, /** @type {string} */ text) => void (/** @type {HTMLElement} */ (this.rows.querySelector(`[data-note="${id}"]`)).textContent = text);
    const browser = { available: "Ready: it needs no download.", downloadable: "The browser fetches it once, some gigabytes.", downloading: "The browser is fetching it." }[own] ?? "";
    note("browser", browser);
    /** @type {HTMLElement} */ (this.rows.querySelector('[data-label="browser"]')?.closest("label")).hidden = browser === "";
    const size = weights?.bytes === undefined ? "" : `, ${megabytes(weights.bytes)}`;
    note("small", weights ? `${weights.name}${size}, fetched once; or a file of yours.` : "A GGUF file of yours, run by llama.cpp.");
    byId("file-label", HTMLElement).textContent = weights ? "Or a GGUF file of yours" : "A GGUF file of yours";
  }

  /** @param {string} [id] the row to begin with, if it is not that of the choice */
  open(id) {
    const { row, baseUrl, model, apiKey } = this.choice;
    this.#pick(id ?? row);
    if (id !== undefined && id !== row) return this.dialog.showModal();
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
    this.device.hidden = !isOnDevice(row);
    for (const part of this.device.querySelectorAll("#file, #file-label, #device-note")) /** @type {HTMLElement} */ (part).hidden = id !== "small";
    byId("device-warning", HTMLElement).textContent = id === "small" ? slowness() ?? "" : "";
    this.file.value = "";
    this.fields.baseUrl.value = row.baseUrl ?? "";
    this.fields.model.value = row.model ?? "";
    // A key belongs to the address it was typed for, so it does not carry over to another row.
    this.fields.apiKey.value = "";
    byId("key-field", HTMLElement).hidden = row.key === "none";
    byId("key-need", HTMLElement).textContent = row.key === "optional" ? "(if it wants one)" : "";
    byId("model-ids", HTMLDataListElement).replaceChildren();
    this.found.replaceChildren();
    this.requested = undefined;
    byId("model-use", HTMLButtonElement).textContent = isOnDevice(row) ? "Load it" : "Use it";
    this.#problems({});
    this.#sayWhatLeaves();
  }

  #sayWhatLeaves() {
    const choice = this.#read();
    const { host, origin } = this.weights ? new URL(this.weights.url, document.baseURI) : location;
    const from = choice.row === "small" && !this.file.files?.length && origin !== location.origin ? ` The weights come from ${host}.` : "";
    this.leaves.replaceChildren(h("strong", {}, "What leaves the page: "), whatLeaves(choice).replace(/^Nothing leaves this page/, "nothing").replace(/^What/, "what") + from);
  }

  /** @returns {Choice} */
  #read() {
    const row = this.rows.querySelector("input:checked");
    const { baseUrl, model, apiKey } = this.fields;
    return { row: row instanceof HTMLInputElement ? row.value : FIRST_CHOICE.row, baseUrl: baseUrl.value.trim(), model: model.value.trim(), apiKey: apiKey.value.trim() };
  }

  #confirm() {
    const choice = this.#read();
    if (isOnDevice(rowOf(choice.row))) return this.#load(choice);
    const missing = missingIn(choice);
    this.#problems(missing);
    const first = /** @type {(keyof typeof missing)[]} */ (Object.keys(missing))[0];
    if (first) return this.fields[first].focus();
    this.choice = choice;
    store(this.remember.checked && isRemote(rowOf(choice.row)) ? choice : undefined);
    this.dialog.close();
    this.onChoice(choice);
  }

  /** The choice becomes that of the page once it is loaded. @param {Choice} choice */
  #load({ row }) {
    const file = row === "small" ? this.file.files?.[0] : undefined;
    if (row === "small" && !file && !this.weights) {
      byId("file-problem", HTMLElement).textContent = "Choose a file that ends in .gguf: this site has no weights of its own.";
      return this.file.focus();
    }
    this.dialog.close();
    this.onLoad({ ...FIRST_CHOICE, row }, file);
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
    byId("file-problem", HTMLElement).textContent = "";
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
