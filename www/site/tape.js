// @ts-check
// The viewer: a tape by address (`?tape=URL`), from a file, or dropped on the page. It is read here, and sent nowhere.

import "package:entry/web.js";
import "package:inspector.js";
import { Tape } from "package:tape.js";

const inspector = /** @type {any} */ (document.querySelector("turnwheel-inspector"));
const form = /** @type {HTMLFormElement} */ (document.querySelector("form.address"));
const address = /** @type {HTMLInputElement} */ (form.elements.namedItem("tape"));
const picker = /** @type {HTMLInputElement} */ (document.querySelector("input[type=file]"));
const status = /** @type {HTMLElement} */ (document.querySelector("[role=status]"));

/** @param {string} name @param {() => Promise<string>} read */
async function show(name, read) {
  status.textContent = `Reading ${name} …`;
  try {
    inspector.source = Tape.parse(await read());
    status.textContent = name;
    document.title = `${name} · turnwheel`;
    inspector.hidden = false;
  } catch (error) {
    status.textContent = `${name} cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
}

/** @param {string} given */
async function fetched(given) {
  const url = new URL(given, location.href);
  if (!/^https?:$/.test(url.protocol)) throw new Error("an address begins with https:// or http://");
  const response = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" }).catch(() => {
    throw new Error("its server cannot be reached, or lets no other site read it (CORS); download the file and drop it here");
  });
  if (!response.ok) throw new Error(`its server answers ${response.status}`);
  return response.text();
}

const open = (/** @type {File | undefined} */ file) => file && show(file.name, () => file.text());
picker.addEventListener("change", () => open(picker.files?.[0]));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  // The inspector opens itself what is dropped on it.
  if (event.defaultPrevented) return;
  event.preventDefault();
  void open(event.dataTransfer?.files[0]);
});
inspector.addEventListener("turnwheel-open", (/** @type {any} */ { detail }) => void (status.textContent = detail.name));
inspector.addEventListener("turnwheel-ready", () => document.documentElement.setAttribute("data-ready", ""));

const given = new URLSearchParams(location.search).get("tape");
if (given) {
  address.value = given;
  await show(given, () => fetched(given));
}
