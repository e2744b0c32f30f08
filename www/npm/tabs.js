// @ts-check
// turnwheel/tabs: one agent in all tabs of an app. One tab owns it, all see it, and when the owner goes, another takes over.

export { openAgent } from "./stores/open.js";
export { shared } from "./tabs/shared.js";
