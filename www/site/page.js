// @ts-check
// What a page of the site does: its search, its Run buttons, and that it works without a network the next time.

import MiniSearch from "minisearch";
import { SEARCH } from "./search.js";

const root = document.documentElement.dataset["root"] || "./";

// ---- Run

const codeOf = (/** @type {string} */ name) => new URL(`${name}.js`, import.meta.url);

/** Runs the program of a button, in a Worker that ends with it; pressed again, it stops. @param {HTMLButtonElement} button */
function run(button) {
  const output = /** @type {HTMLOutputElement} */ (button.nextElementSibling);
  const worker = new Worker(codeOf("worker"), { type: "module", name: button.dataset["program"] ?? "" });
  const line = (/** @type {string} */ text, kind = "") => {
    const piece = document.createElement("span");
    piece.className = kind;
    piece.textContent = text;
    output.append(piece);
  };
  const end = (/** @type {string} */ state) => {
    worker.terminate();
    button.textContent = "Run";
    button.onclick = () => run(button);
    output.dataset["state"] = state;
    if (output.textContent === "") line("It ran, and printed nothing.", "note");
  };
  output.hidden = false;
  output.replaceChildren();
  output.dataset["state"] = "running";
  button.textContent = "Stop";
  button.onclick = () => end("stopped");
  worker.onmessage = ({ data }) => {
    if (data.text !== undefined) line(data.text, data.line ?? "");
    else if (data.failed === undefined) end("done");
    else {
      line(data.failed, "error");
      end("failed");
    }
  };
  worker.onerror = (event) => {
    line(event.message || "the script of this block could not be loaded", "error");
    end("failed");
  };
}

for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("button.run"))) button.onclick = () => run(button);

// ---- Search

const box = /** @type {HTMLInputElement} */ (document.querySelector("header input"));
const list = /** @type {HTMLElement} */ (document.querySelector("#found"));
/** @type {Promise<MiniSearch> | undefined} */
let index;
let chosen = -1;

/** The index of all pages, fetched when somebody begins to search. */
const loaded = () => (index ??= fetch(`${root}search.json`).then(async (response) => MiniSearch.loadJSON(await response.text(), SEARCH)));

async function search() {
  const words = box.value.trim();
  const found = words === "" ? [] : (await loaded()).search(words).slice(0, 12);
  if (words !== box.value.trim()) return;
  chosen = -1;
  list.replaceChildren(...found.map(({ address, title, heading, begin }, at) => {
    const item = document.createElement("li");
    item.role = "option";
    item.id = `found-${at}`;
    const link = document.createElement("a");
    link.href = `${root}${address}`;
    link.tabIndex = -1;
    const head = document.createElement("strong");
    head.textContent = heading === title ? title : `${title}: ${heading}`;
    link.append(head, ` ${begin}`);
    item.append(link);
    return item;
  }));
  if (words !== "" && found.length === 0) list.append("Nothing is found.");
  show(words !== "");
}

/** @param {boolean} isOpen */
function show(isOpen) {
  list.hidden = !isOpen;
  box.setAttribute("aria-expanded", String(isOpen));
}

/** @param {number} step */
function choose(step) {
  const items = [...list.querySelectorAll("li")];
  if (items.length === 0) return;
  chosen = (chosen + step + items.length) % items.length;
  for (const [at, item] of items.entries()) item.ariaSelected = String(at === chosen);
  items[chosen]?.scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", `found-${chosen}`);
}

box.addEventListener("focus", () => void loaded());
box.addEventListener("input", () => void search());
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter") list.querySelectorAll("a")[Math.max(chosen, 0)]?.click();
  else if (event.key === "Escape") show(false);
});
addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  box.focus();
});
addEventListener("click", (event) => event.target instanceof Node && !list.parentElement?.contains(event.target) && show(false));

// ---- Without a network

if ("serviceWorker" in navigator && isSecureContext) void navigator.serviceWorker.register(`${root}sw.js`).catch(() => {});
