// @ts-check
// turnwheel/react: an agent in a React component.
"use client";

export { useAgent } from "./react/hook.js";
