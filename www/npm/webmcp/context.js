// @ts-check
// The browser's side of WebMCP: `document.modelContext`.

import { misuse } from "../shared.js";

/** @import { PageAnnotations } from "../webmcp.js" */
/**
 * A tool as the browser lists it.
 * @typedef {{ name: string, title?: string, description: string, inputSchema?: unknown, annotations?: PageAnnotations, origin: string, window: object }} RegisteredTool
 */
/**
 * @typedef {EventTarget & { __isWebMCPPolyfill?: boolean, registerTool(tool: object, options?: object): Promise<void>, getTools(options?: object): Promise<RegisteredTool[]>, executeTool(tool: RegisteredTool, input: unknown, options?: object): Promise<unknown> }} ModelContext
 */

/** @param {string} caller @param {"getTools" | "registerTool"} needed @returns {ModelContext} */
export function modelContext(caller, needed) {
  const context = /** @type {any} */ (globalThis.document)?.modelContext;
  if (typeof context?.[needed] === "function") return context;
  const why = context ? `the browser's WebMCP has no ${needed}` : "there is no WebMCP here";
  throw misuse(`${caller}: ${why}; start Chromium with --enable-features=WebMCP, or load @mcp-b/webmcp-polyfill before`);
}

/** The names that `expose` has registered in this page: an agent is not offered its own tools. @type {Map<string, number>} */
export const exposed = new Map();

/** The tools that came from pages: they are not given back to them. @type {WeakSet<object>} */
export const fromPages = new WeakSet();
