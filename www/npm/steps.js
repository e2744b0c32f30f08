// @ts-check
// Runs inside a durable engine; loaded with the first agent whose host has a `step`, and by no other page.

export { stepsOf } from "./steps/journal.js";
