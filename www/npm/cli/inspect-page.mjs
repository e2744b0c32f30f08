// The script of the page that `npx turnwheel inspect` serves, as page.js beside the package.

import "./package/entry/web.js";
import "./package/inspector.js";
import { Tape } from "./package/tape.js";

const inspector = document.querySelector("turnwheel-inspector");
inspector.addEventListener("turnwheel-ready", () => document.documentElement.setAttribute("data-ready", ""));
const response = await fetch("tape");
if (response.ok) inspector.source = Tape.parse(await response.text());
else document.querySelector("h1").textContent = "The tape is not there any more: start npx turnwheel inspect again.";
