// @ts-check
// The store behind turnwheel/react, without React. Not a door of the package: tests look at it.

export { AgentStore } from "./react/store.js";
