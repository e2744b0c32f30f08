// @ts-check
// turnwheel/ag-ui: runs as AG-UI events, and what AG-UI clients post.

export { frontendTools, fromAGUI } from "./ag-ui/input.js";
export { toAGUI, toAGUIResponse } from "./ag-ui/stream.js";
