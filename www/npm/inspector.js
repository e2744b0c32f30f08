// @ts-check
// turnwheel/inspector: <turnwheel-inspector>, an element that shows what an agent did. Importing it defines the element.

import { TurnwheelInspector } from "./inspector/element.js";
import { useTapes } from "./inspector/tape-log.js";

export { InspectorLog } from "./inspector/model/log.js";
export { TurnwheelInspector };

// Tapes are read by their own entry, which is loaded when there is one to show.
useTapes(() => import("./tape.js"));

// Another copy of the package may have been first.
if (globalThis.customElements && !customElements.get("turnwheel-inspector")) customElements.define("turnwheel-inspector", TurnwheelInspector);
